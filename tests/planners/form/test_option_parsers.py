"""Options as words: the API reads them as the command line does, and refuses what it refuses."""

from __future__ import annotations

import json
import math
from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcd.cli.planner_options import AS_TYPED
from mlcd.cli.planners import scale, serve, train, tune
from mlcd.cli.what_if import what_if
from mlcd.core.errors import UserError
from mlcd.planners.form.option_parsers import MOST_EACH, MOST_LETTERS, PARSERS, parse_options

COMMANDS: dict[str, click.Command] = {"train": train, "tune": tune, "scale": scale, "serve": serve, "what-if": what_if}
OF_THE_COMMAND_ALONE = {"decide_only", "yes", "output", "knobs", "detach", "begin_from", "variables"}
OF_THE_COMMAND_ALONE |= {"samples", "min_agreement", "named", "deploy", "watch_json"}
"""Options that say how a command line behaves, or name a file here."""
SAID = ["100", "$5", "6h", "1d 4h", "none", "1..8", "8", "0", "-1", "0.3", "64..1024", "96,192", "abc", "", "fastest"]
SAID += ["knee", "cheapest", "per-dollar", "accuracy >= 0.97", "s3,vm-ps", "s4", "512..1769", "30ms", "sequence=128"]
SAID += ["full", "partial", "linear", "simulated", "exact", "2", "65", "1e3", "nan", "inf", " 3 ", "٣", "c5.*"]


def options(kind: str) -> dict[str, click.Option]:
    found = [each for each in COMMANDS[kind].params if isinstance(each, click.Option)]
    written = {each.opts[0].removeprefix("--").replace("-", "_"): each for each in found}
    return {name: each for name, each in written.items() if each.name not in OF_THE_COMMAND_ALONE and name != "_o"}


def by_the_command_line(kind: str, name: str, value: str) -> Any:
    """What click makes of one option."""
    option = options(kind)[name]
    command = click.Command(kind, params=[option])
    with command.make_context(kind, [option.opts[0], value]) as ctx:
        return ctx.params[option.name or ""]


@pytest.mark.parametrize("kind", PARSERS)
def test_the_words_of_a_kind_are_the_options_of_its_command(kind: str) -> None:
    labels = {"project", "tag"}  # they are about the run, not about its job
    assert set(PARSERS[kind]) == set(options(kind)) - {"decide_only", "yes"} - labels


ONE_WORD = sorted((kind, name) for kind in PARSERS for name in PARSERS[kind] if name != "fresh")


@given(st.sampled_from(ONE_WORD), st.sampled_from(SAID) | st.text(max_size=8))
def test_a_word_is_read_as_the_command_line_reads_it(place: tuple[str, str], value: str) -> None:
    kind, name = place
    try:
        expected = by_the_command_line(kind, name, value)
    except click.UsageError:
        with pytest.raises(UserError, match=name):
            parse_options(kind, {name: value})
        return
    if name in {*AS_TYPED, "instances", "target_loss", "min_rps"}:
        return  # a shell may say anything there; what a request may say is tested below
    (read,) = parse_options(kind, {name: value}).values()
    assert read == expected


@given(
    st.sampled_from(ONE_WORD),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=5,
    ),
)
def test_whatever_json_says_is_read_or_refused_in_one_line_that_names_the_option(
    place: tuple[str, str], value: Any
) -> None:
    kind, name = place
    told = ""
    try:
        parse_options(kind, {name: value})
    except UserError as error:
        told = str(error)
    assert not told or told.startswith(name)


def test_numbers_of_json_and_names_of_the_command_line_are_words_too() -> None:
    said = {"budget": 100, "early-look": 0.5, "seed": 3, "nodes": 4, "instances": ["c5.*", "p3.*"], "deadline": None}
    assert parse_options("train", said) == {
        "budget": 100.0,
        "early_look": 0.5,
        "seed": 3,
        "nodes": (4, 4),
        "instances": ("c5.*", "p3.*"),
    }
    assert parse_options("serve", {"shape": {"sequence": 128}}) == parse_options("serve", {"shape": ["sequence=128"]})
    assert parse_options("tune", {"storage": "s3,vm-ps", "fresh": True}) == {"storages": ("s3", "vm-ps"), "fresh": True}


@pytest.mark.parametrize(
    ("kind", "said", "told"),
    [
        ("train", {"bugdet": "5"}, "unknown option of train 'bugdet': did you mean 'budget'?"),
        ("train", {"budget": "abc"}, "budget 'abc': expected dollars, such as $100"),
        ("train", {"deadline": "6"}, "deadline '6': expected a duration"),
        ("train", {"goal": "knee"}, "goal 'knee': known: fastest, cheapest"),
        ("train", {"seed": True}, "seed 'True': expected a whole number of 0 or more"),
        ("train", {"parallel": 65}, "parallel '65': expected a whole number from 1 to 64"),
        ("train", {"target_loss": math.nan}, "target_loss 'nan': expected a number"),
        ("train", {"target_loss": "1e999"}, "target_loss '1e999': expected a number"),
        ("train", {"on": "simulated\nlocal"}, "on 'simulated"),
        ("train", {"fresh": "yes"}, "fresh 'yes': expected true or false"),
        ("train", {"instances": [["c5"]]}, "instances: expected a word or a number, or a list of them"),
        ("train", {"instances": ["c"] * (MOST_EACH + 1)}, "instances: 101 values; at most 100 are allowed"),
        ("train", {"nodes": "1" * (MOST_LETTERS + 1)}, "nodes: 201 characters; at most 200 are allowed"),
        ("serve", {"min_rps": 0}, "min_rps '0': expected a number above 0"),
        ("serve", {"knowledge": "../../etc"}, "knowledge '../../etc': expected a name, such as cpu"),
        ("serve", {"knowledge": "/etc"}, "knowledge '/etc': expected a name, such as cpu"),
        ("serve", {"knobs": "knobs.yaml"}, "unknown option of serve 'knobs'"),
        ("cook", {}, "unknown kind of job 'cook': known: "),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_line(kind: str, said: dict[str, Any], told: str) -> None:
    with pytest.raises(UserError) as refused:
        parse_options(kind, said)
    assert str(refused.value).startswith(told)


def test_words_survive_the_way_through_json() -> None:
    said = {"budget": "100", "nodes": "1..8", "instances": ["c5.*"], "early_look": "none"}
    assert parse_options("train", json.loads(json.dumps(said))) == parse_options("train", said)
