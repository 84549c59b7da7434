"""Before real money: what `mlcd plan` shows, what is asked, and whether credentials were found. Nothing is begun."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from stage import API, JOB, Stage, staged

RENTED = JOB.replace("work: 1M", "work: 1M\n  on: skypilot:aws\n  parameters: 25M\n  flops_per_sample: 12G")


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with staged(tmp_path / "home", mode="ui") as found:
        yield found


def test_a_check_at_a_place_that_rents_shows_the_first_probes_prices_and_outlook_and_asks(stage: Stage) -> None:
    before = stage.written
    told = stage.ask("POST", f"{API}/checks", body={"kind": "train", "job": RENTED}).json()
    assert "for real money, up to $5.00" in told["asks"]
    ahead = told["ahead"]
    assert ahead["configurations"] > 1
    assert all(0 < probe["worst_usd"] < 5 and probe["worst_s"] > 0 for probe in ahead["first"])
    assert ahead["first"]
    low, high = ahead["usd_per_hour"]
    assert 0 < low <= high
    assert ahead["chance"] in ("likely", "doubtful", "unlikely")
    assert ahead["usd"] > 0
    assert [each["cloud"] for each in told["credentials"]] == ["aws"]
    assert stage.written == before


def test_what_cannot_be_known_says_why_and_is_no_reason_to_refuse(stage: Stage) -> None:
    job = RENTED.replace("skypilot:aws", "skypilot:nowhere")
    told = stage.ask("POST", f"{API}/checks", body={"kind": "train", "job": job})
    assert told.status == 200, told.body
    assert told.json()["ahead"]["chance"] == "unknown"
    assert told.json()["ahead"]["because"]


def test_a_place_that_costs_nothing_asks_nothing(stage: Stage) -> None:
    told = stage.ask("POST", f"{API}/checks", body={"kind": "train", "job": JOB}).json()
    assert (told["asks"], told["ahead"], told["credentials"]) == (None, None, [])
