"""A job from a text and words is the job that the command line makes of the same file and the same options."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcd.cli.planners import read_job, scale, train, tune
from mlcd.core.errors import JobFileError, UserError
from mlcd.core.job import Job, Objective
from mlcd.planners.form.jobs import FILE_KINDS, job_from_text, serving_job_of
from mlcd.planners.serve.caps import CAPS
from mlcd.planners.serve.model_facts import ModelFacts
from mlcd.planners.serve.nouns import Arrivals, Cap, Figure, ServingTask

EXAMPLES = Path(__file__).parents[3] / "examples"
MACHINES, FUNCTIONS = EXAMPLES / "resnet50.yaml", EXAMPLES / "functions" / "mobilenet.yaml"
COMMANDS: dict[str, click.Command] = {"train": train, "tune": tune, "scale": scale}
LIMITS = {"budget": st.sampled_from(["100", "$5", "none"]), "deadline": st.sampled_from(["6h", "1d 4h", "none"])}
SEED = {"seed": st.integers(0, 9).map(str), "goal": st.sampled_from(["fastest", "cheapest"])}
ON_MACHINES = {
    **LIMITS,
    **SEED,
    "nodes": st.sampled_from(["1..8", "4"]),
    "instances": st.sampled_from(["c5.*", "p3.2xlarge"]),
    "parallel": st.sampled_from(["1", "64"]),
    "early-look": st.sampled_from(["none", "0.3", "30 %"]),
    "method": st.sampled_from(["heterbo", "net-value"]),
}
ELASTIC = {
    **LIMITS,
    **SEED,
    "workers": st.sampled_from(["1..4", "2"]),
    "batch": st.sampled_from(["64..256", "96,192"]),
    "target": st.just("accuracy >= 0.9"),
    "search": st.sampled_from(["full", "none"]),
    "learning-rate": st.sampled_from(["linear", "sqrt"]),
}
ON_FUNCTIONS = {
    **LIMITS,
    **SEED,
    "functions": st.just("1..50"),
    "memory": st.just("512..1769"),
    "storage": st.just("s3"),
}
TUNED = {**ON_FUNCTIONS, "trials": st.just("16"), "eta": st.just("4"), "epochs-per-stage": st.just("1")}


def by_the_command_line(kind: str, path: Path, said: dict[str, str]) -> Job:
    arguments = [part for name, value in said.items() for part in (f"--{name}", value)]
    with COMMANDS[kind].make_context(kind, [str(path), *arguments]) as ctx:
        chosen = {name: value for name, value in ctx.params.items() if name != "job_path"}
        return read_job(kind, path, chosen)


def some(options: dict[str, st.SearchStrategy[str]]) -> st.SearchStrategy[dict[str, str]]:
    return st.fixed_dictionaries({}, optional=options)


ASKED = (
    some(ON_MACHINES).map(lambda said: ("train", MACHINES, said))
    | some(ELASTIC).map(lambda said: ("scale", MACHINES, said))
    | some(ON_FUNCTIONS).map(lambda said: ("train", FUNCTIONS, said))
    | some(TUNED).map(lambda said: ("tune", FUNCTIONS, {"trials": "8", **said}))
)


@given(ASKED)
def test_the_api_and_the_command_line_make_the_same_job(asked: tuple[str, Path, dict[str, str]]) -> None:
    kind, path, said = asked
    expected = by_the_command_line(kind, path, said)
    made = job_from_text(kind, path.read_text(), said, path.name)
    assert made == replace(expected, folder="")
    assert made.goal.stated == expected.goal.stated


def test_the_name_of_a_text_is_for_messages_and_never_a_path(tmp_path: Path) -> None:
    text = MACHINES.read_text().replace("name: resnet50\n", "")
    assert job_from_text("train", text, {}, "../../etc/cifar.yaml").name == "cifar"
    with pytest.raises(JobFileError, match=r"^cifar\.yaml:1:1"):
        job_from_text("train", "- not a job", {}, "../../etc/cifar.yaml")


def test_a_job_of_a_text_has_no_folder_of_the_one_who_reads_it() -> None:
    assert job_from_text("train", MACHINES.read_text(), {}).folder == ""


@pytest.mark.parametrize("kind", ["serve", "what-if", "cook", ""])
def test_a_kind_without_a_job_file_is_refused(kind: str) -> None:
    with pytest.raises(UserError, match="unknown kind of job"):
        job_from_text(kind, MACHINES.read_text(), {})


def test_an_option_of_another_place_is_refused_as_on_the_command_line() -> None:
    with pytest.raises(UserError, match="--storage is for jobs on functions"):
        job_from_text("train", MACHINES.read_text(), {"storage": "s3"})
    with pytest.raises(UserError, match="--nodes is for machines"):
        job_from_text("train", FUNCTIONS.read_text(), {"nodes": "1..4"})


def test_a_model_is_served_as_it_was_asked_for() -> None:
    knobs = "knobs: {threads: [1, 2]}\nprice: {threads: 0.04}\n"
    facts = ModelFacts("tiny")
    job = serving_job_of(
        facts, {"latency-p95": "30ms", "min-rps": 10, "budget": "2", "trials": 4}, knobs, "/tmp/tiny.onnx"
    )
    assert isinstance(job.ask, ServingTask)
    assert job.ask.caps == (Cap(Figure.P95, 0.03),)
    assert (job.ask.min_rate, job.ask.arrivals) == (10.0, Arrivals.OPEN)
    assert job.ask.path == "/tmp/tiny.onnx"
    assert job.ask.table is not None
    assert job.ask.table.knobs == {"threads": (1, 2)}
    assert (job.goal.objective, job.goal.budget_usd, job.search.trials) == (Objective.PER_DOLLAR, 2.0, 4)
    assert (job.search.method, job.on, job.search.seed) == ("grey-box", "local", 0)


@pytest.mark.parametrize("option", [*CAPS, "deadline"])
@pytest.mark.parametrize("written", [20, 0.2, "20"])
def test_a_time_without_its_unit_is_refused(option: str, written: object) -> None:
    with pytest.raises(UserError, match=rf"'{written}': expected .* \(a number alone has no unit\)"):
        serving_job_of(ModelFacts("tiny"), {option: written}, "knobs: {threads: [1, 2]}\nprice: {threads: 0.04}\n")


def test_a_mistake_in_the_knobs_is_told_by_its_line() -> None:
    with pytest.raises(JobFileError, match=r"^knobs\.yaml:1:"):
        serving_job_of(ModelFacts("tiny"), {}, "knobs: {threads: [1, 2]}\n")


def test_every_kind_has_words() -> None:
    from mlcd.planners.form.option_parsers import PARSERS

    assert {*FILE_KINDS, "serve"} < set(PARSERS)
