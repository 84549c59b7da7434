"""All that is wrong with a job file, at once: each mistake once, at its line, and nothing that follows from another."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from mlcd.cli import cli, failure
from mlcd.core.errors import JobFileError
from mlcd.planners.jobfile.read import load_job, mistakes_in, parse_job
from mlcd.planners.jobfile.source import read_source

ROOT = Path(__file__).parents[2]
FILES = [
    path
    for folder in (ROOT / "examples", ROOT / "mlcd" / "service" / "web" / "examples")
    for path in sorted(folder.rglob("*.yaml"))
    if "\nmlcd:" in "\n" + path.read_text(encoding="utf-8")
]
PAGE = (ROOT / "docs" / "reference" / "job-file.md").read_text(encoding="utf-8")
BLOCKS = [block.partition("```")[0] for block in PAGE.split("```yaml\n")[1:]]
DOCUMENTED = [block for block in BLOCKS if "\nmlcd:" in "\n" + block]
TEXTS = [(path.read_text(encoding="utf-8"), path.parent) for path in FILES] + [(text, ROOT) for text in DOCUMENTED]
BAD = """\
name: [x]
naem: y
resources: {cpus: lots, accelerators: 'A100:x'}
envs: {a=b: 1}
mlcd:
  wrok: 90M
  bugdet: 5
  deadline: 6
  deadline: 6h
  checkpoint_size: 5GB
  on: simulatd
  search: {nodes: 9..2, seeed: 1, method: net-valu}
  goal: fast
  scale: {workers: x, price: {cpu: 1}}
"""
TOLD = [
    (1, 1, "name", None),
    (2, 1, "naem", "name"),
    (3, 13, "resources.cpus", None),
    (3, 25, "resources.accelerators", None),
    (4, 8, "envs.a=b", None),
    (6, 3, "mlcd.wrok", "work"),
    (7, 3, "mlcd.bugdet", "budget"),
    (8, 3, "mlcd.deadline", None),
    (9, 3, "mlcd.deadline", None),
    (10, 3, "mlcd.checkpoint_size", None),
    (11, 3, "mlcd.on", "simulated"),
    (12, 12, "mlcd.search.nodes", None),
    (12, 25, "mlcd.search.seeed", "seed"),
    (12, 35, "mlcd.search.method", "net-value"),
    (13, 3, "mlcd.goal", "fastest"),
    (14, 11, "mlcd.scale.workers", None),
    (14, 23, "mlcd.scale.price.gb", None),
]


def messages(text: str) -> list[str]:
    return [each.message for each in mistakes_in(text, None)]


def test_every_mistake_is_told_once_at_its_place():
    assert [(each.line, each.column, each.key, each.instead) for each in mistakes_in(BAD, None)] == TOLD


def test_a_contradiction_is_told_beside_a_wrong_value():
    told = messages("mlcd:\n  work: 1M\n  budget: much\n  checkpoint_size: 5GB\n")
    assert len(told) == 2
    assert "the job saves no checkpoints" in told[1]


@pytest.mark.parametrize("line", ["dead", "budget 5", "work 5: x: y", "work", "@", "goal: [a", "checkpoints true"])
def test_a_line_that_is_no_yaml_hides_no_other_mistake(line: str):
    told = mistakes_in(f"mlcd:\n  batch: x\n  {line}\n  seed: 1\n  egress: 5GB\n", None)
    first_words = sorted(each.message.split()[0] for each in told if each.key != "mlcd.work")
    assert first_words == ["batch", "not", "unknown"]
    assert ("mlcd.work" in [each.key for each in told]) == ("work" not in line)


def test_a_line_that_begins_a_block_is_not_left_out():
    assert len(messages("mlcd:\n  work: 1\n  search {\n    nodes: 1..8\n")) == 1


@pytest.mark.parametrize(
    "block",
    [
        "{work: many, batch: 8, report: '(?P<epoch>\\d+) (?P<step>\\d+)'}",
        "{work: {dataset: x, epochs: 3}}",
        "{work: {tokens: 1M}, sequence: x}",
        "{work: 1M, checkpoints: maybe, checkpoint_size: 5GB}",
        "{wrok: 1M}",
        "{work: {samples: 1M}, model: x, plan: {micro_batch: 1}, global_batch: 8, sequence: 9}",
        "{work: {samples: 1M}, plan: {micro_bach: 1}}",
        "{work: many, functions: {model: lr, data: higgs, batch: 9}}",
    ],
)
def test_what_only_follows_from_a_mistake_is_not_told(block: str):
    assert len(messages(f"mlcd: {block}\n")) == 1


@pytest.mark.parametrize(("text", "folder"), TEXTS)
def test_what_is_shipped_and_shown_has_no_mistake(text: str, folder: Path):
    assert [each for each in mistakes_in(text, folder) if "no such file" not in each.message] == []


@pytest.mark.parametrize("text", ["", "- a\n", "mlcd: 5\n", "mlcd:\n  work: [1\n", "a: &a [*a]\n", "mlcd: {}\n"])
def test_what_is_no_job_at_all_has_one_mistake(text: str):
    assert len(mistakes_in(text, None)) == 1


def trails(value: Any, trail: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    for key, inner in value.items() if isinstance(value, dict) else ():
        yield (*trail, key)
        yield from trails(inner, (*trail, key))


SOUND = [(text, folder) for text, folder in TEXTS if not mistakes_in(text, folder)]
ODD = st.sampled_from([None, True, -1, 0.5, "", "much", "1..0", [], [None], {}, {"a": 1}, "\x00", "9" * 40])


@given(st.data())
def test_one_wrong_key_of_a_sound_file_is_one_mistake_at_its_line(data: st.DataObject):
    """Whatever else needs that key: nothing but the key itself is told."""
    text, folder = data.draw(st.sampled_from(SOUND))
    written = read_source(text).written
    trail = data.draw(st.sampled_from([each for each in trails(written) if each[0] == "mlcd" and len(each) > 1]))
    inside = written
    for key in trail[:-1]:
        inside = inside[key]
    if len(trail) > 2 and trail[-2] in ("values", "space", "endpoints", "config"):
        return  # words of the user's own
    inside[trail[-1]] = [{"no": "such value"}]
    broken = yaml.safe_dump(written, sort_keys=False)
    source = read_source(broken)
    (only,) = mistakes_in(broken, folder)
    marks = [source.marks[trail[:n]] for n in range(2, len(trail) + 1)]
    assert only.line in {mark.line + 1 for mark in marks}


@given(st.data())
def test_no_change_of_a_sound_file_crashes_the_check(data: st.DataObject):
    text, folder = data.draw(st.sampled_from(TEXTS))
    written = deepcopy(read_source(text).written)
    for _ in range(data.draw(st.integers(1, 4))):
        inside, trail = written, data.draw(st.sampled_from([*trails(written), ()]))
        if trail == ():
            continue
        for key in trail[:-1]:
            inside = inside[key]
        match data.draw(st.sampled_from(["value", "name", "gone"])):
            case "value":
                inside[trail[-1]] = data.draw(ODD)
            case "name":
                inside[f"{trail[-1]}x"] = inside.pop(trail[-1])
            case _:
                del inside[trail[-1]]
    changed = yaml.safe_dump(written, sort_keys=False)
    found = mistakes_in(changed, folder)
    assert all(1 <= each.line <= changed.count("\n") + 1 and each.column >= 1 and each.message for each in found)
    assert len(set(found)) == len(found)
    try:
        parse_job(changed, folder / "job.yaml")
    except JobFileError:
        assert found


@given(st.sampled_from(TEXTS), st.integers(0, 4_000), st.text(alphabet="\t:{}[]&*|>'\"-#!%a1 \n", max_size=3))
def test_no_typo_whatever_crashes_the_check(file: tuple[str, Path], position: int, typed: str):
    text = file[0][: position % len(file[0])] + typed + file[0][position % len(file[0]) :]
    assert all(each.line >= 1 and each.message for each in mistakes_in(text, file[1]))


def test_the_command_prints_a_line_each_as_compilers_do(tmp_path: Path):
    path = tmp_path / "job.yaml"
    path.write_text(BAD, encoding="utf-8")
    done = CliRunner().invoke(cli, ["check", str(path)], standalone_mode=False)
    lines = done.output.splitlines()
    assert done.return_value == 2
    assert len(lines) == len(TOLD)
    assert lines[7] == (
        f"{path}:8:3: mlcd.deadline: '6': expected a duration, such as 6h, 90m or 1d 4h (a number alone has no unit)"
    )
    told = json.loads(CliRunner().invoke(cli, ["check", str(path), "-o", "json"], standalone_mode=False).output)
    assert [(each["line"], each["column"], each["key"], each["instead"]) for each in told["mistakes"]] == TOLD


def test_the_command_says_that_nothing_is_wrong(tmp_path: Path):
    path = tmp_path / "job.yaml"
    path.write_text("mlcd: {work: 1M}\n", encoding="utf-8")
    done = CliRunner().invoke(cli, ["check", str(path)], standalone_mode=False)
    assert (done.return_value, done.output) == (
        0,
        f"{path}: no mistakes. See what it would do, at no cost: mlcd plan {path}\n",
    )


def test_a_run_says_the_first_mistake_and_how_many_there_are(tmp_path: Path):
    path = tmp_path / "job.yaml"
    path.write_text("mlcd:\n  work: many\n  budget: much\n  deadline: 6\n", encoding="utf-8")
    with pytest.raises(JobFileError) as refused:
        load_job(path)
    first = f"{path}:2:3: work 'many': expected a positive number, such as 60M, 1.2B or 50000"
    assert str(refused.value) == first
    assert failure(refused.value) == (2, f"{first} (2 more mistakes: mlcd check {path})")
