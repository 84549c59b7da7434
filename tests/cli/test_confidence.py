"""How sure a certificate has to be: asked in the file or as an option, and told with every certificate."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Mlcd = Callable[..., Any]
WriteJob = Callable[..., Path]


def decided(mlcd: Mlcd, path: Path, *options: str) -> Any:
    return mlcd("train", path, "--decide-only", "-o", "json", *options).document


def test_the_option_stands_in_for_the_file_and_the_file_for_the_usual(mlcd: Mlcd, recorded_job: WriteJob) -> None:
    for limits, options, confidence in (
        ("budget: $40", (), 0.99),
        ("budget: $40\nconfidence: 95 %", (), 0.95),
        ("budget: $40\nconfidence: 95 %", ("--confidence", "0.9"), 0.9),
    ):
        run = decided(mlcd, recorded_job(limits), *options)
        assert run["goal"]["confidence"] == pytest.approx(confidence)
        assert run["decision"]["confidence"] == pytest.approx(confidence)


def test_without_a_limit_there_is_nothing_to_be_sure_of(mlcd: Mlcd, recorded_job: WriteJob) -> None:
    run = decided(mlcd, recorded_job())
    assert run["decision"]["certified"]
    assert run["decision"]["confidence"] is None
    assert "with 99 %" not in mlcd("show", "last").out


def test_the_answer_tells_it_wherever_it_is_read(mlcd: Mlcd, recorded_job: WriteJob, tmp_path: Path) -> None:
    shown = mlcd("train", recorded_job("budget: $40"), "--confidence", "99.5 %", "-y")
    assert "certified within $40.00 with 99.5 % confidence" in shown.out
    assert "Assumes: the rate that the run reaches with 99.5 % confidence; launches of one configuration" in shown.out
    mlcd("report", "last", "--to", tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "certified within $40.00 with 99.5 % confidence" in page
    assert "finishing at the rate that the run reaches with 99.5 % confidence, stays within the limit" in page


def test_who_asks_for_less_certifies_more_from_the_same_probes(mlcd: Mlcd, recorded_job: WriteJob) -> None:
    mlcd("train", recorded_job("budget: $40"), "--decide-only")
    forecasts = [
        mlcd("what-if", "last", "--confidence", sure, "-o", "json").document["decision"]["forecast"]
        for sure in ("0.6", "0.9", "99.9 %")
    ]
    worst = [ahead["worst_usd"] / ahead["usd"] for ahead in forecasts]
    assert worst == sorted(set(worst))


def test_a_run_that_cannot_be_certified_goes_on_with_less(mlcd: Mlcd, recorded_job: WriteJob) -> None:
    refused = mlcd("train", recorded_job("budget: $40"), "--confidence", "0.9999", "--decide-only", "-o", "json")
    needed = refused.document["decision"]["forecast"]["worst_usd"] + refused.document["spent_usd"]
    again = mlcd("resume", "last", "--budget", f"{0.99 * needed:.2f}", "--confidence", "0.6", "--decide-only")
    assert "and the confidence of certificates from 99.99 % to 60 %" in again.err
    assert "with 60 %" in again.out


def test_a_refusal_names_how_sure_the_best_one_is_within_the_limits_as_they_are(
    mlcd: Mlcd, recorded_job: WriteJob
) -> None:
    def what_if(*options: str) -> Any:
        return mlcd("what-if", "last", *options, "-o", "json").document["decision"]

    mlcd("train", recorded_job("budget: $40"), "--decide-only")
    enough = what_if("--budget", "1")["relaxations"][0]["budget_usd"]
    a_little_less = f"{0.97 * enough:.4f}"
    assert "or --confidence 0.9" in mlcd("what-if", "last", "--budget", a_little_less).out
    (sure,) = [
        way["confidence"] for way in what_if("--budget", a_little_less)["relaxations"] if way["confidence"] is not None
    ]
    assert what_if("--budget", a_little_less, "--confidence", f"{sure}")["certified"]


@pytest.mark.parametrize("command", ["train", "plan", "what-if", "resume", "scale"])
def test_what_is_no_probability_is_refused_in_one_line(mlcd: Mlcd, recorded_job: WriteJob, command: str) -> None:
    what = "last" if command in ("what-if", "resume") else recorded_job()
    answer = mlcd(command, what, "--confidence", "99")
    assert answer.code == 2
    assert "'99': expected a probability from 0.5 to below 1, such as 0.99 or 99 %" in answer.complaint


def test_functions_are_certified_in_another_way(mlcd: Mlcd, write_job: WriteJob) -> None:
    answer = mlcd("train", write_job(), "--on", "functions", "--confidence", "0.9")
    assert answer.code == 2
    assert "--confidence is for machines, and functions have none" in answer.complaint
