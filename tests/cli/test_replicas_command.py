"""mlcd replicas: how many for the traffic, in words and as JSON, and what is wrong with what was asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mlcd_fixtures.engine_runs import CHAT, chat_run
from mlcd_fixtures.serving_runs import serving_run

from mlcd.core.ledger import Ledger
from mlcd.planners.serve.nouns import Cap, Figure, service_of

Mlcd = Callable[..., Any]


@pytest.fixture
def chat(home: Path) -> str:
    """A run of a language model in the ledger of this test."""
    home.mkdir(exist_ok=True)
    ledger = Ledger(home / "ledger.db")
    run = chat_run(ledger)
    ledger.close()
    return run


def test_forty_requests_a_second_three_times_as_many_at_noon(mlcd: Mlcd, chat: str) -> None:
    answer = mlcd("replicas", "last", "--rate", 40, "--peak", "3x@11:00-14:00", "--api-price", "0.60")
    assert answer.code == 0
    assert "One of them may fail." in answer.out
    assert "11-14 h: " in answer.out
    assert "An API at $0.60 in, $0.60 out: " in answer.out
    assert "yours is cheaper from " in answer.out
    assert f"mlcd export {chat} --to skyserve --trial " in answer.out


def test_the_document_says_the_same(mlcd: Mlcd, chat: str) -> None:
    asked = ("replicas", "last", "--rate", 40, "--peak", "3x@11:00-14:00", "-o", "json")
    document = mlcd(*asked).document
    chosen = document["chosen"]
    takes = chosen["requests_per_s_per_replica"]
    assert takes < chosen["closed_loop_requests_per_s"]
    for rate, count in zip(document["requests_per_s"]["by_hour"], chosen["by_hour"], strict=True):
        assert (count - 1) * takes >= rate * (1 - 1e-6)
    assert chosen["usd_per_month"] == min(each["usd_per_month"] for each in document["deployments"])
    assert chosen["autoscaling"]["max_replicas"] == max(chosen["by_hour"])
    without = mlcd(*asked, "--no-spare").document["chosen"]
    assert max(without["by_hour"]) == max(chosen["by_hour"]) - 1


def test_what_it_says_to_export_can_be_exported(mlcd: Mlcd, chat: str) -> None:
    words = mlcd("replicas", "last", "--rate", 40).out.splitlines()
    (line,) = [line for line in words if line.startswith("Deploy it: mlcd ")]
    answer = mlcd(*line.removeprefix("Deploy it: mlcd ").split())
    assert answer.code == 0
    assert "target_qps_per_replica" in answer.out


def test_traffic_from_a_file(mlcd: Mlcd, chat: str) -> None:
    Path("day.csv").write_text("hour,requests_per_s\n" + "".join(f"{hour},{10 + hour}\n" for hour in range(24)))
    assert mlcd("replicas", "last", "--traffic", "day.csv").code == 0


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        ([], "give the expected traffic: either --rate"),
        (["--rate", 4, "--traffic", "x.csv"], "or --traffic FILE"),
        (["--rate", "many"], "expected a number above zero, such as 40"),
        (["--rate", 4, "--peak", "3x"], "such as 3x@11:00-14:00"),
        (["--traffic", "x.csv"], "x.csv: no such file"),
        (["--traffic", "x.csv", "--peak", "3x@1:00-2:00"], "--peak works only with --rate"),
        (["--rate", 4, "--api-price", "cheap"], "such as 0.60, or 0.15/0.60"),
    ],
)
def test_mistakes_are_one_line(mlcd: Mlcd, chat: str, asked: list[object], complaint: str) -> None:
    answer = mlcd("replicas", "last", *asked)
    assert answer.code == 2
    assert complaint in answer.complaint


def test_an_onnx_model_has_no_tokens(mlcd: Mlcd, home: Path) -> None:
    home.mkdir(exist_ok=True)
    ledger = Ledger(home / "ledger.db")
    serving_run(ledger)
    ledger.close()
    assert "does not serve a language model" in mlcd("replicas", "last", "--rate", 4).complaint
    assert (
        "--trial is for runs that serve a language model"
        in mlcd("export", "last", "--to", "triton", "--trial", 1).complaint
    )


def test_caps_that_no_trial_keeps(mlcd: Mlcd, home: Path) -> None:
    job = replace(CHAT, ask=replace(service_of(CHAT), caps=(Cap(Figure.TTFT_P95, 0.001),)))
    home.mkdir(exist_ok=True)
    ledger = Ledger(home / "ledger.db")
    chat_run(ledger, job)
    ledger.close()
    assert "has no trial that keeps ttft_p95 <= 1 ms" in mlcd("replicas", "last", "--rate", 4).complaint
