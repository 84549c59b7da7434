"""Every mistake in an elastic job gets one clear line and exit code 2, and nothing is started."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

Mlcd = Callable[..., Any]
WriteJob = Callable[..., Path]

WORK = "{dataset: 100k, epochs: 60}"
TARGET = ("--target", "accuracy >= 0.9")


@pytest.fixture(autouse=True)
def nothing_was_begun(mlcd: Mlcd, home: Path) -> Iterator[None]:
    """Whatever a test here asks for, the ledger stays empty and no model is stored."""
    yield
    assert mlcd("runs", "-o", "json").document == {"runs": []}
    assert not (home / "models").exists()


@pytest.fixture
def job(write_job: WriteJob) -> WriteJob:
    """Writes a job that could be scaled, but for what a test takes away."""

    def write(extra: str = "", *, work: str = WORK, checkpoints: str = "checkpoints: true") -> Path:
        return write_job(f"{checkpoints}\n{extra}".strip(), work=work, search="{instances: [g4dn.xlarge]}")

    return write


@pytest.mark.parametrize(
    "options, told",
    [
        (("--workers", "3", "--batch", "64"), "batch 64 cannot be shared equally by 3 workers; use 63"),
        (("--workers", "0..4"), "'--workers': '0..4': the smallest count is 1"),
        (("--workers", "8..2"), "the range is empty; did you mean 2..8?"),
        (("--workers", "many"), "'--workers': 'many': "),
        (("--batch", "abc"), "'abc': expected a batch, a range such as 64..1024, or a list such as 96,192"),
        (("--batch", "1024..64"), "'1024..64': the first number must not be larger than the second"),
        (("--batch", "0"), "'--batch': '0': "),
        (("--target", "accuracy > 1"), "'accuracy > 1': expected a metric and its value"),
        (("--target", "good"), "'good': expected a metric and its value"),
        (("--search", "some"), "'some' is not one of 'full', 'partial', 'none'"),
        (("--learning-rate", "cubic"), "'cubic' is not one of 'none', 'linear', 'sqrt', 'adascale'"),
        (("--goal", "best"), "'best' is not one of 'knee', 'fastest', 'cheapest'"),
        (("--budget", "-5"), "'-5': must be more than zero"),
        (("--deadline", "6"), "(a number alone has no unit)"),
        (("--on", "clowd", "--batch", "64"), "clowd"),
        (("--on", "functions", "--batch", "64"), "mlcd scale switches machines under a job, which functions cannot"),
        (("--batch", "64..256"), "name a target that ends the job, as in --target 'accuracy >= 0.97'"),
        (("--bach", "64"), "No such option '--bach'. Did you mean '--batch'?"),
    ],
)
def test_a_mistake_in_an_option_is_one_line(mlcd: Mlcd, job: WriteJob, options: tuple[str, ...], told: str) -> None:
    assert told in mlcd("scale", job(), *options).complaint


def test_worker_counts_that_the_cloud_does_not_have_are_refused(mlcd: Mlcd, job: WriteJob) -> None:
    complaint = mlcd("scale", job(), "--instances", "g4dn.12xlarge", "--workers", "1..3", "--batch", "64").complaint
    assert "workers 1..3: none possible; this cloud has 4 to " in complaint


def test_several_batches_are_counted_in_epochs(mlcd: Mlcd, job: WriteJob) -> None:
    complaint = mlcd("scale", job(work="6M"), "--batch", "64..256", *TARGET).complaint
    assert "work: a scaled job is counted in epochs; say `dataset: 1.28M` and `epochs: 70`" in complaint


def test_a_job_without_checkpoints_cannot_be_scaled(mlcd: Mlcd, job: WriteJob) -> None:
    complaint = mlcd("scale", job(checkpoints="checkpoints: false"), "--batch", "64..256", *TARGET).complaint
    assert "the job saves no checkpoints, so it cannot move to other machines: save them, then say `checkp" in complaint


def test_a_recording_knows_one_batch(mlcd: Mlcd, job: WriteJob, recording: Path) -> None:
    answer = mlcd("scale", job(), "--on", f"recorded:{recording}", "--batch", "64..256", *TARGET)
    assert "a recording has one batch only; leave `--batch` out, or use --on simulated" in answer.complaint


def test_the_knee_is_no_goal_of_train(mlcd: Mlcd, job: WriteJob) -> None:
    assert "'knee' is not one of 'fastest', 'cheapest'" in mlcd("train", job(), "--goal", "knee").complaint
    assert "the knee is a goal of `mlcd scale`" in mlcd("train", job("goal: knee")).complaint


@pytest.mark.parametrize(
    "elastic, told",
    [
        ("{wokers: 1..4}", "unknown key 'wokers': did you mean 'workers'?"),
        ("{bach: 64}", "unknown key 'bach': did you mean 'batch'?"),
        ("{targt: accuracy >= 0.9}", "unknown key 'targt': did you mean 'target'?"),
        ("{search: parital}", "'parital'"),
        ("{batch: 1024..64}", "'1024..64': the first number must not be larger than the second"),
        ("{target: accurate}", "'accurate': expected a metric and its value"),
        ("{learning_rate: cubic}", "'cubic'"),
        ("{price: {cpu: cheap, gb: $1}}", "'cheap': expected dollars"),
    ],
)
def test_a_mistake_in_the_elastic_block_is_one_line_with_its_place(
    mlcd: Mlcd, job: WriteJob, elastic: str, told: str
) -> None:
    complaint = mlcd("scale", job(f"elastic: {elastic}")).complaint
    assert "job.yaml:9:" in complaint
    assert told in complaint


def test_search_none_is_refused_if_earlier_runs_may_not_be_used(mlcd: Mlcd, write_job: WriteJob) -> None:
    path = write_job("checkpoints: true", work=WORK, search="{instances: [g4dn.xlarge], earlier: false}")
    complaint = mlcd("scale", path, "--batch", "64..256", *TARGET, "--search", "none").complaint
    assert "earlier: false" in complaint
    assert "--search partial" in complaint


def test_an_elastic_job_must_state_spot_or_on_demand(mlcd: Mlcd, job: WriteJob) -> None:
    written = job()
    written.write_text(f"resources: {{use_spot: any}}\n{written.read_text()}")
    told = "use_spot: any is for `mlcd train`; for `mlcd scale` say true or false"
    assert told in mlcd("scale", written, "--batch", "64").complaint
