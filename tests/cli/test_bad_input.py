"""Every bad input gets one clear line and exit code 2, and loses nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from mlcd.cli import cli

Mlcd = Callable[..., Any]
WriteJob = Callable[..., Path]


def untouched(mlcd: Mlcd) -> bool:
    """Nothing was begun."""
    return bool(mlcd("runs", "-o", "json").document == {"runs": []})


@pytest.mark.parametrize("command", ["train", "plan"])
def test_a_missing_job_file_is_named(mlcd: Mlcd, command: str) -> None:
    assert "nope.yaml: no such file; a job file is" in mlcd(command, "nope.yaml").complaint
    assert untouched(mlcd)


def test_malformed_yaml_is_told_with_line_and_column(mlcd: Mlcd, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text("name: x\nmlcd:\n  work: [1M\n  goal: fastest\n")
    assert mlcd("train", "job.yaml").complaint.startswith("mlcd: job.yaml:4:7: not YAML: ")
    assert untouched(mlcd)


@pytest.mark.parametrize(
    "extra, task, told",
    [
        ("", "resuorces: {}\n", "job.yaml:3:1: unknown key 'resuorces': did you mean 'resources'?"),
        ("bugdet: $5", "", "job.yaml:8:3: unknown key 'bugdet': did you mean 'budget'?"),
        ("budget: 100 euros", "", "job.yaml:8:3: budget '100 euros': expected dollars, such as $100"),
        ("budget: -5", "", "budget '-5': must be more than zero, such as $100"),
        ("budget: $0", "", "budget '$0': must be more than zero, such as $100"),
        ("deadline: -3h", "", "deadline '-3h': a duration must be more than zero, such as 6h"),
        ("deadline: 6 parsecs", "", "deadline '6 parsecs': unknown unit 'parsecs'; expected a duration, such as 6h"),
        ("deadline: 6", "", "deadline '6': expected a duration, such as 6h, 90m or 1d 4h (a number alone has no unit)"),
        ("checkpoint_size: 50", "", "checkpoint_size '50': expected an amount of data, such as 20GB"),
        ("checkpoint_size: 50GB", "", "checkpoint_size: the job saves no checkpoints; add `checkpoints: true`"),
        ("memory: 9000TB", "", "no type here has 9e+06 GB for the model (`memory`); relax that, or"),
        ("on: clowd", "", "unknown backend 'clowd': known: functions, local, "),
        ("", "resources: {infra: azzure}\n", "unknown cloud 'azzure': did you mean 'azure'?"),
        ("", "resources: {accelerators: GB300}\n", "no catalog here has GB300; they have A100, "),
        ("", "resources: {accelerators: [GB300, MI300X]}\n", "no catalog here has GB300 or MI300X; they have A100, "),
        (
            "",
            "resources: {accelerators: {H100: 3}}\n",
            "no type here has accelerators H100:3; relax that, or list the types",
        ),
        ("", "resources: {cpus: lots}\n", "job.yaml:3:13: cpus 'lots': expected a number"),
    ],
)
def test_a_mistake_in_the_job_file_is_one_line(
    mlcd: Mlcd, write_job: WriteJob, extra: str, task: str, told: str
) -> None:
    write_job(extra, task=task)
    assert told in mlcd("train", "job.yaml").complaint
    assert untouched(mlcd)


@pytest.mark.parametrize(
    "search, told",
    [
        ("{seeed: 3}", "job.yaml:7:12: unknown key 'seeed': did you mean 'seed'?"),
        ("{seed: -1}", "seed '-1': expected a whole number of 0 or more"),
        ("{nodes: 8..2}", "nodes '8..2': the range is empty; did you mean 2..8?"),
        ("{nodes: 0..2}", "nodes '0..2': the smallest count is 1"),
        ("{nodes: 1..9999999}", "nodes '1..9999999': the largest count is 1000"),
        ("{instances: [zz9.*]}", "no instance matches 'zz9.*': "),
        ("{instances: h100}", "no instance matches 'h100', which is a GPU; types that have it: p5.4xlarge"),
        ("{instances: p3.2xlrage}", "no instance matches 'p3.2xlrage': did you mean p3.2xlarge"),
        ("{instances: [g5.xlarge, p3.2xlrage]}", "no instance matches 'p3.2xlrage': did you mean p3.2xlarge"),
        ("{method: hetrbo}", "unknown method 'hetrbo': did you mean 'heterbo'?"),
    ],
)
def test_a_mistake_in_the_search_block_is_one_line(mlcd: Mlcd, write_job: WriteJob, search: str, told: str) -> None:
    write_job(search=search)
    assert told in mlcd("train", "job.yaml").complaint
    assert untouched(mlcd)


def test_a_mistake_in_the_work_block_is_one_line(mlcd: Mlcd, write_job: WriteJob) -> None:
    write_job(work="{sampels: 1M}")
    assert "job.yaml:4:10: unknown key 'sampels': did you mean 'samples'?" in mlcd("train", "job.yaml").complaint
    assert untouched(mlcd)


def test_instance_types_may_have_commas_between_them(mlcd: Mlcd, write_job: WriteJob) -> None:
    write_job()
    assert mlcd("plan", "job.yaml", "--instances", "g5.xlarge,p3.*", "-o", "json").document["types"] == 4
    assert {row["instance_type"] for row in _offers(mlcd, "g5.xlarge, c5.large")} == {"g5.xlarge", "c5.large"}
    assert "no instance matches 'g6.xlrge'" in mlcd("plan", "job.yaml", "--instances", "g5.xlarge,g6.xlrge").complaint
    assert "expected patterns, such as" in mlcd("plan", "job.yaml", "--instances", "g5.xlarge,").complaint


def _offers(mlcd: Mlcd, patterns: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = mlcd("offers", "--instances", patterns, "-o", "json").document["offers"]
    return rows


@pytest.mark.parametrize("command", ["train", "plan"])
@pytest.mark.parametrize(
    "option, value, told",
    [
        ("--budget", "-5", "'--budget': '-5': must be more than zero, such as $100; see mlcd {} --help"),
        ("--budget", "0", "'0': must be more than zero"),
        ("--budget", "100 euros", "'100 euros': expected dollars, such as $100"),
        ("--deadline", "-3h", "'-3h': a duration must be more than zero"),
        ("--deadline", "6 parsecs", "'6 parsecs': unknown unit 'parsecs'"),
        ("--deadline", "6", "(a number alone has no unit)"),
        ("--nodes", "8..2", "the range is empty; did you mean 2..8? see mlcd {} --help"),
        ("--instances", "zz9.*", "no instance matches 'zz9.*'"),
        ("--method", "hetrbo", "unknown method 'hetrbo': did you mean 'heterbo'?"),
        ("--on", "clowd", "unknown backend 'clowd': known: functions, local, "),
        ("--on", "recorded:/nope", "/nope/recording.yaml: no such file; a recording is a folder with"),
        ("--goal", "fast", "'fast' is not one of 'fastest', 'cheapest'"),
        ("--seed", "-1", "'--seed': '-1': expected a whole number of 0 or more"),
        ("--output", "xml", "'xml' is not one of 'table', 'json'"),
        ("--bugdet", "5", "No such option '--bugdet'. Did you mean '--budget'? see mlcd {} --help"),
    ],
)
def test_a_mistake_in_an_option_is_one_line(
    mlcd: Mlcd, write_job: WriteJob, command: str, option: str, value: str, told: str
) -> None:
    write_job()
    assert told.format(command) in mlcd(command, "job.yaml", option, value).complaint
    assert untouched(mlcd)


@pytest.mark.parametrize(
    "arguments, told",
    [
        (["trian"], "unknown command 'trian': did you mean 'train'?"),
        (["--nope"], "No such option '--nope'; see mlcd --help"),
        (["train"], "Missing argument 'JOB'; see mlcd train --help"),
        (["runs", "this"], "Got unexpected extra argument (this)"),
        (["offers", "--max-price", "-1"], "must be more than zero"),
        (["offers", "--sort", "beauty"], "unknown sort order 'beauty': known: gpus, memory, price"),
        (["offers", "--cloud", "azzure"], "unknown cloud 'azzure': did you mean 'azure'?"),
        (["offers", "--gpu", "A1000"], "no catalog here has A1000; they have A100, "),
        (["catalog", "refresh", "mars"], "Invalid value for 'SOURCE': 'mars' is not one of 'aws', 'skypilot'"),
        (["bench", "train"], "Missing argument 'RECORDINGS...'"),
        (["bench", "train", "nope"], "nope/recording.yaml: no such file"),
        (["bench", "train", "x", "--method", "hetrbo"], "unknown method 'hetrbo': did you mean 'heterbo'?"),
        (["bench", "train", "x", "--method", ""], "unknown method '': known: "),
        (["bench", "train", "x", "--scenario", "fast"], "unknown scenario 'fast': did you mean 'fastest'?"),
        (["bench", "train", "x", "--seeds", "0"], "0 is not in the range x>=1"),
        (["bench", "train", "x", "--noise", "9"], "9.0 is not in the range 0<=x<=0.5"),
    ],
)
def test_a_mistake_in_the_command_is_one_line(mlcd: Mlcd, arguments: list[str], told: str) -> None:
    assert told in mlcd(*arguments).complaint


@pytest.mark.parametrize("factor", ["0.5", "0", "-1", "nan", "much", ""])
def test_a_limit_that_nothing_can_keep_is_refused(mlcd: Mlcd, recording: Path, factor: str) -> None:
    complaint = mlcd("bench", "train", recording, "--limit-factor", factor).complaint
    assert f"--limit-factor: '{factor}': " in complaint


@pytest.mark.parametrize(
    "old, new, told",
    [
        ("outcome", "result", "points.csv:1: missing column outcome"),
        ("20.0,ok", "nan,ok", "points.csv:2: samples_per_s 'nan': expected a finite number"),
        ("small,2,", "small,1,", "points.csv:3: duplicate row: 1 x small is also in line 2"),
        ("ok", "failed", "points.csv: no usable row"),
    ],
)
def test_a_wrong_recording_is_one_line(
    mlcd: Mlcd, recorded_job: WriteJob, recording: Path, old: str, new: str, told: str
) -> None:
    points = recording / "points.csv"
    points.write_text(points.read_text().replace(old, new))
    job = recorded_job()
    for command in (["train", job], ["plan", job], ["bench", "train", recording]):
        assert told in mlcd(*command).complaint
    assert untouched(mlcd)


@pytest.mark.parametrize(
    "content, complaint",
    [(b"\xff\xfe\x00", "points.csv: not readable as CSV"), (b'"' + b"x" * 200_000, "points.csv:1: not a CSV line")],
    ids=["not UTF-8", "not CSV"],
)
def test_points_that_are_no_csv_are_one_line(
    mlcd: Mlcd, recorded_job: WriteJob, recording: Path, content: bytes, complaint: str
) -> None:
    (recording / "points.csv").write_bytes(content)
    assert complaint in mlcd("train", recorded_job()).complaint


@pytest.mark.parametrize("file", ["recording.yaml", "points.csv"])
def test_half_a_recording_is_one_line(mlcd: Mlcd, recorded_job: WriteJob, recording: Path, file: str) -> None:
    (recording / file).unlink()
    assert f"{file}: no such file; a recording is a folder with" in mlcd("train", recorded_job()).complaint


def test_a_shell_sees_the_same_line_and_code(mlcd_process: Mlcd, write_job: WriteJob) -> None:
    write_job("budget: 100 euros")
    answer = mlcd_process("train", "job.yaml")
    assert answer.complaint == "mlcd: job.yaml:8:3: budget '100 euros': expected dollars, such as $100"
    assert answer.out == ""
    assert mlcd_process("trian").complaint == "mlcd: unknown command 'trian': did you mean 'train'?"
    assert mlcd_process("resume", "last").complaint == "mlcd: unknown run 'last': there is none yet"


def test_a_name_that_looks_like_markup_is_shown_as_it_is(mlcd: Mlcd, write_job: WriteJob) -> None:
    job = write_job()
    job.write_text(job.read_text().replace("name: demo", "name: '[/x] [bold]'"))
    assert "[/x] [bold]" in mlcd("plan", job).out
    assert mlcd("train", job, "--decide-only").code == 0
    for command in ("show", "ledger"):
        assert mlcd(command, "last").code == 0


def test_a_machine_that_looks_like_markup_is_shown_as_it_is(
    mlcd: Mlcd, recorded_job: WriteJob, recording: Path
) -> None:
    points = recording / "points.csv"
    points.write_text(points.read_text().replace("small,", "[/x]small,"))
    assert mlcd("train", recorded_job(), "--instances", "*small", "--budget", "none", "--decide-only").code == 0
    for command in (["runs"], ["show", "last"], ["ledger", "last"], ["what-if", "last"]):
        assert "[/x]small" in mlcd(*command).out


def times(command: click.Command, name: str = "mlcd") -> Iterator[tuple[str, click.Option]]:
    """Every option of every command that takes a time."""
    for option in command.params:
        if isinstance(option, click.Option) and option.metavar in ("TIME", "DURATION"):
            yield f"{name} {option.opts[0]}", option
    if isinstance(command, click.Group):
        for child in command.list_commands(click.Context(command)):
            below = command.get_command(click.Context(command), child)
            assert below is not None
            yield from times(below, f"{name} {child}")


TIMES = dict(times(cli))


@pytest.mark.parametrize("name", TIMES)
def test_no_option_takes_a_time_without_its_unit(name: str) -> None:
    with pytest.raises(click.BadParameter, match=r"'20': expected .*, such as .* \(a number alone has no unit\)"):
        TIMES[name].process_value(click.Context(cli), "20")


def test_the_options_that_take_a_time_are_found() -> None:
    assert {"mlcd train --deadline", "mlcd serve --latency-p95", "mlcd what-if --itl-p50", "mlcd clean --older"} <= set(
        TIMES
    )
