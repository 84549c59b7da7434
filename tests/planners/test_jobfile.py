from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcd.core.errors import JobFileError, MlcdError
from mlcd.core.job import CONFIDENCE, Communication, Goal, Hints, Job, Objective, Search
from mlcd.planners.jobfile.read import load_job, parse_job
from mlcd.planners.jobfile.task import TASK_KEYS

PATH = Path("/jobs/job.yaml")
EVERYTHING = """\
name: resnet50
workdir: .
num_nodes: 4
setup: pip install torch
run: |
  torchrun train.py
envs: {EPOCHS: 90, FLAG: yes}
secrets: {TOKEN: null}
file_mounts: {/data: s3://bucket}
resources: {accelerators: 'A100:8', infra: aws, use_spot: false}
mlcd:
  work: {dataset: 1.28M, epochs: 90}
  goal: cheapest
  budget: $1,200.50
  deadline: 1d 4h
  communication: parameter-server
  parameters: 25.6M
  flops_per_sample: 12.3G
  batch: 256
  memory: 32GB
  on: recorded:runs/resnet
  search:
    method: heterbo
    nodes: 2..16
    instances: [c5.*, p3.*]
    seed: 7
"""


def read(block: str, task: str = "") -> Job:
    return parse_job(f"{task}mlcd:\n  work: 1M\n{block}", PATH)


def test_every_key_is_read() -> None:
    job = parse_job(EVERYTHING, PATH)
    assert job.name == "resnet50"
    assert job.work_samples == pytest.approx(1.28e6 * 90)
    assert job.goal == Goal(Objective.CHEAPEST, 1200.5, 28 * 3_600)
    assert job.communication is Communication.PARAMETER_SERVER
    assert job.hints == Hints(25.6e6, 12.3 * 1e9, 256, 32.0)
    assert job.search == Search("heterbo", (2, 16), ("c5.*", "p3.*"), 7)
    assert job.on == "recorded:/jobs/runs/resnet"


@pytest.mark.parametrize("written, confidence", [("0.9", 0.9), ("99.5 %", 0.995), ("'90%'", 0.9)])
def test_how_sure_a_certificate_has_to_be(written: str, confidence: float) -> None:
    assert read(f"  confidence: {written}\n").goal.confidence == pytest.approx(confidence)
    assert read("").goal.confidence == CONFIDENCE


def test_what_skypilot_reads_passes_through_untouched() -> None:
    task = parse_job(EVERYTHING, PATH).task
    assert set(task) == {
        "name", "workdir", "num_nodes", "setup", "run", "envs", "secrets", "file_mounts", "resources",
    }  # fmt: skip
    assert task["envs"] == {"EPOCHS": 90, "FLAG": True}
    assert task["run"] == "torchrun train.py\n"
    assert task["resources"] == {"accelerators": "A100:8", "infra": "aws", "use_spot": False}


def test_a_secret_keeps_its_name_and_loses_its_value() -> None:
    assert read("", task="secrets: {TOKEN: abc}\n").task == {"secrets": {"TOKEN": None}}


@pytest.mark.parametrize("key", [key for key in TASK_KEYS if key not in ("name", "resources", "secrets")])
def test_each_key_of_a_skypilot_task_is_allowed(key: str) -> None:
    assert read("", task=f"{key}: {{a: 1}}\n").task == {key: {"a": 1}}


def test_only_work_is_needed_and_the_rest_has_defaults() -> None:
    job = parse_job("mlcd: {work: 5k}\n", PATH)
    assert job == Job(name="job", work_samples=5_000, folder=str(PATH.parent.resolve()), task={})
    assert job.goal == Goal(Objective.FASTEST, None, None)
    assert job.search.nodes == (1, 50)
    assert job.on == "simulated"


@pytest.mark.parametrize(
    "work", ["115.2M", "115200000", "{samples: 115.2M}", "{dataset: 1.28M, epochs: 90}", "'115,200,000'"]
)
def test_work_is_samples_or_a_dataset_times_epochs(work: str) -> None:
    assert parse_job(f"mlcd:\n  work: {work}\n", PATH).work_samples == pytest.approx(115.2e6)


@pytest.mark.parametrize(
    "on, expected",
    [
        ("simulated", "simulated"),
        ("recorded:here/it", "recorded:/jobs/here/it"),
        ("recorded:../it", "recorded:/jobs/../it"),
        ("recorded:/else/where", "recorded:/else/where"),
    ],
)
def test_a_relative_recording_is_beside_the_job_file(on: str, expected: str) -> None:
    assert read(f"  on: {on}\n").on == expected


def test_one_pattern_needs_no_list() -> None:
    assert read("  search: {instances: p3.*}\n").search.instances == ("p3.*",)


def test_a_block_can_be_shared_by_an_anchor() -> None:
    text = "envs: &base {a: 1}\nfile_mounts: {<<: *base, b: 2}\nmlcd: {work: 1M}\n"
    assert parse_job(text, PATH).task["file_mounts"] == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    "text, where, told",
    [
        ("", "1:1", "empty, or not a task"),
        ("- a\n", "1:1", "empty, or not a task"),
        ("name: x\n", "1:1", "the `mlcd:` block is missing"),
        ("name: x\nmlcd: 5\n", "2:1", "the `mlcd:` block is missing"),
        ("name: x\nmlcd: {}\n", "2:1", "`work` is missing"),
        ("name: x\nmlcd: {wrok: 90M}\n", "2:8", "unknown key 'wrok': did you mean 'work'?"),
        ("name: [x]\nmlcd: {work: 1}\n", "1:1", "name: expected a word"),
        ("name: x\nnaem: y\nmlcd: {work: 1}\n", "2:1", "unknown key 'naem': did you mean 'name'?"),
        ("1: y\nmlcd: {work: 1}\n", "1:1", "unknown key '1'"),
        ("mlcd: {work: 1}\nmlcd: {work: 2}\n", "2:1", "'mlcd' is written twice"),
        ("mlcd:\n  work: 1M\n  work: 2M\n", "3:3", "'work' is written twice"),
        ("mlcd:\n  work: 1M\n  bugdet: 5\n", "3:3", "unknown key 'bugdet': did you mean 'budget'?"),
        ("mlcd:\n  work: 1\n  nodes: 4\n", "3:3", "unknown key 'nodes': it belongs in the `search:` block"),
        ("mlcd:\n  work: {sampels: 1}\n", "2:10", "unknown key 'sampels': did you mean 'samples'?"),
        ("mlcd:\n  work: 1\n  search:\n    seeed: 1\n", "4:5", "unknown key 'seeed': did you mean 'seed'?"),
        ("mlcd:\n  work: [1\n", "3:1", "not YAML"),
        ("mlcd:\n  work: 1\n\tgoal: x\n", "3:1", "not YAML"),
        ("mlcd: {work: 1}\n---\nb: 2\n", "2:1", "expected a single document"),
        ("mlcd: {work: 1}\nrun: !!python/name:os.system\n", "2:6", "not YAML"),
        ("mlcd: {work: 1}\nrun: \x07\n", "2:6", "the character #x0007 is not allowed"),
        ("mlcd: {work: 1}\nrun: 2026-13-45\n", "1:1", "not YAML: month must be in 1..12"),
        ("mlcd: {work: 1}\nenvs: &a {b: *a}\n", "2:7", "an alias inside its own anchor"),
        ("mlcd: {work: 1}\nenvs: {b: !!binary AA==}\n", "2:11", "binary values are not allowed"),
        ("mlcd: {work: 1}\nenvs: [a]\n", "2:1", "envs: expected names and values, such as `EPOCHS: 90`"),
        ("mlcd: {work: 1}\nenvs: {a=b: 1}\n", "2:8", "envs 'a=b': expected a variable's name, such as EPOCHS"),
        ('mlcd: {work: 1}\nenvs: {a: "\\0"}\n', "2:8", "envs 'a': expected a variable's name, such as EPOCHS"),
        ('mlcd: {work: 1}\nrun: "echo \\0"\n', "2:1", "run: has a zero byte in it; take it out"),
        ('mlcd: {work: 1}\nworkdir: "a\\0b"\n', "2:1", "workdir: has a zero byte in it; take it out"),
        ("mlcd: {work: 1}\n? [a]\n: b\n", "2:3", "a key must be a plain word"),
        ("mlcd: {work: 1}\nrun: " + "[" * 1_000 + "\n", "1:1", "nested too deeply"),
        ("mlcd: {work: 1}\nresources: 5\n", "2:1", "expected keys such as `accelerators: A100:8`"),
        ("mlcd: {work: 1}\nresources: {cpus: lots}\n", "2:13", "cpus 'lots': expected a number, such as 16"),
        ("mlcd: {work: 1}\nresources: {memory: -1}\n", "2:13", "memory '-1': expected a number"),
        ("mlcd: {work: 1}\nresources: {accelerators: 'A100:x'}\n", "2:13", "accelerators 'A100:x': expected a type"),
        ("mlcd: {work: 1}\nresources: {accelerators: {A100: x}}\n", "2:13", "such as A100:8"),
    ],
)
def test_a_mistake_is_told_with_its_line_and_column(text: str, where: str, told: str) -> None:
    with pytest.raises(JobFileError) as refused:
        parse_job(text, PATH)
    assert str(refused.value).startswith(f"{PATH}:{where}: ")
    assert told in str(refused.value)


@pytest.mark.parametrize(
    "line, told",
    [
        ("goal: fast", "goal 'fast': did you mean 'fastest'?"),
        ("goal:", "goal 'None': known: fastest, cheapest, knee"),
        ("communication: gossip", "communication 'gossip': known: all-reduce, parameter-server"),
        ("budget: 100 euros", "budget '100 euros': expected dollars, such as $100"),
        ("deadline: 6", "deadline '6': expected a duration"),
        ("confidence: 1", "confidence '1': expected a probability from 0.5 to below 1, such as 0.99 or 99 %"),
        ("confidence: sure", "confidence 'sure': expected a probability"),
        ("parameters: many", "parameters 'many': expected a positive number"),
        ("flops_per_sample: -1", "flops_per_sample '-1': expected a positive number"),
        ("batch: 2.5", "batch '2.5': expected a whole number"),
        ("memory: 5 apples", "memory '5 apples': expected an amount of memory"),
        ("on: [simulated]", "on '['simulated']': input should be a valid string"),
        ("search: 5", "search '5': expected keys below it"),
        ("search:", "search 'None': expected keys below it"),
        ("search: {nodes: }", "nodes 'None': expected a range"),
        ("search: {nodes: 9..2}", "nodes '9..2': the range is empty; did you mean 2..9?"),
        ("search: {instances: []}", "instances '[]': expected patterns"),
        ("search: {instances: [1]}", "instances '[1]': expected patterns"),
        ("search: {seed: -1}", "seed '-1': expected a whole number of 0 or more"),
        ("search: {seed: 1.5}", "seed '1.5': expected a whole number of 0 or more"),
        ("search: {method: [x]}", "method '['x']': input should be a valid string"),
    ],
)
def test_a_wrong_value_is_quoted_back_with_what_was_expected(line: str, told: str) -> None:
    column = line.find("{") + 4 if "{" in line else 3
    with pytest.raises(JobFileError) as refused:
        read(f"  {line}\n")
    assert str(refused.value).startswith(f"{PATH}:3:{column}: {told}")


@pytest.mark.parametrize(
    "work, told",
    [
        ("0", "work '0': must be more than zero"),
        ("abc", "work 'abc': expected a positive number"),
        ("{epochs: 3}", "say either"),
        ("{samples: 5, epochs: 3}", "say either"),
        ("{dataset: x, epochs: 3}", "dataset 'x': expected a positive number"),
        ("{dataset: 1e300, epochs: 1e300}", "too large"),
    ],
)
def test_work_that_cannot_be_counted_is_refused(work: str, told: str) -> None:
    with pytest.raises(JobFileError) as refused:
        parse_job(f"mlcd:\n  work: {work}\n", PATH)
    assert told in str(refused.value)


@pytest.mark.parametrize(
    "more, told",
    [
        ("report: 'loss (?P<loss>.*)'", "expected a pattern with a group"),
        ("report: '(?P<step>'", "report '(?P<step>': it cannot be matched: missing )"),
        (
            r"report: 'step (?P<step>\d+)(?=,)'",
            "it cannot be matched: lookahead and lookbehind are not supported: ",
        ),
        (
            r"report: '(?P<step>\d+) of \1'",
            "it cannot be matched: backreferences are not supported: patterns are matched by RE2",
        ),
        (
            r"report: '(?P<epoch>\d+) (?P<step>\d+)'",
            "report: an `epoch` group needs the length of an epoch: `work",
        ),
        (r"report: '(?P<epoch>\d+) (?P<samples>\d+)'", "report: an `epoch` group needs the length of an epoch"),
        (r"report: 'epoch (?P<epoch>[\d.]+)'", "report: an `epoch` group needs the length of an epoch"),
    ],
)
def test_a_report_that_cannot_be_matched_or_counted_is_refused(more: str, told: str) -> None:
    with pytest.raises(JobFileError) as refused:
        parse_job(f"mlcd:\n  work: 1M\n  {more}\n", PATH)
    assert told in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "more",
    [
        r"work: 1M, report: '(?P<epoch>\d+) (?P<step>\d+)/(?P<steps>\d+)'",
        r"work: {dataset: 5k, epochs: 2}, batch: 8, report: '(?P<epoch>\d+) (?P<step>\d+)'",
        r"work: {dataset: 5k, epochs: 2}, report: '(?P<epoch>\d+) (?P<samples>\d+)'",
        r"work: {dataset: 5k, epochs: 2}, report: 'epoch (?P<epoch>[\d.]+)'",
    ],
)
def test_an_epoch_whose_length_is_known_can_be_counted(more: str) -> None:
    assert "epoch" in parse_job(f"mlcd: {{{more}}}\n", PATH).report


def test_a_step_within_an_epoch_needs_its_batch() -> None:
    with pytest.raises(JobFileError, match="add `batch: 128`"):
        parse_job(r"mlcd: {work: {dataset: 5k, epochs: 2}, report: '(?P<epoch>\d+) (?P<step>\d+)'}", PATH)


def test_a_file_that_cannot_be_read_is_told_as_such(tmp_path: Path) -> None:
    with pytest.raises(JobFileError, match="no such file; a job file is"):
        load_job(tmp_path / "nope.yaml")
    with pytest.raises(JobFileError, match="cannot be read: Is a directory"):
        load_job(tmp_path)
    (tmp_path / "latin.yaml").write_bytes("name: caf\xe9\n".encode("latin-1"))
    with pytest.raises(JobFileError, match="cannot be read: not UTF-8 text"):
        load_job(tmp_path / "latin.yaml")


def test_aliases_of_aliases_are_not_written_out_without_end() -> None:
    lines = ["envs:", "  a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"  a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
    with pytest.raises(JobFileError, match="more than 100,000 values"):
        parse_job("\n".join([*lines, "mlcd: {work: 1}", ""]), PATH)


@given(st.text(alphabet="abmlcdworkn: \n-[]{}&*!'\"1%|>?#,", max_size=60))
def test_no_text_whatever_fails_otherwise_than_with_a_line_and_a_column(text: str) -> None:
    told = f"{PATH}:"
    try:
        parse_job(text, PATH)
    except MlcdError as refused:
        told = str(refused)
    assert told.startswith(f"{PATH}:")
