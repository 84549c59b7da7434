"""What was spent: real dollars are never mixed with simulated ones."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mlcd.reports.view.summary import Summary
from mlcd.service.web.routes.runs import spend_of

LIVE = Summary(
    "a-1", "train", "a", "finished", False, "ada", "vision", "2026-11-02T10:00:00+00:00", "skypilot", "live", "fastest",
    "fastest", 3, "2 x g5.xlarge", 4.5, 60.0, 10.0, None, "",
)  # fmt: skip
SIMULATED = replace(LIVE, run="b-1", provenance="simulated", spent_usd=100.0)


def test_real_dollars_of_a_month_a_member_and_a_team_are_told_apart_from_simulated_ones() -> None:
    spend = spend_of([LIVE, SIMULATED, replace(LIVE, run="a-2", started_at="2026-12-01T00:00:00+00:00")])
    assert [(each.month, each.usd, each.live_usd, each.runs) for each in spend.by_month] == [
        ("2026-11", pytest.approx(104.5), pytest.approx(4.5), 2),
        ("2026-12", pytest.approx(4.5), pytest.approx(4.5), 1),
    ]
    for (share,) in (spend.by_person, spend.by_team):
        assert (share.usd, share.live_usd) == (pytest.approx(109.0), pytest.approx(9.0))
    assert {each.name: each.usd for each in spend.by_provenance} == {"live": 9.0, "simulated": 100.0}
