"""What a what-if says of configurations that would be clearly better and are not certain to fit."""

from __future__ import annotations

import pytest

from mlcd.core.job import Goal, Objective
from mlcd.reports.tradeoff import TradeoffPoint
from mlcd.reports.uncertified_option import better_point


def point(label: str, hours: float, usd: float, measured: bool = True) -> TradeoffPoint:
    seconds = 3_600 * hours
    return TradeoffPoint(label, "a", seconds, usd, 1.3 * seconds, 1.3 * usd, False, False, measured)


POINTS = [point("slow", 48, 105), point("fast", 18, 142), point("faster", 17, 160), point("guess", 9, 90, False)]


@pytest.mark.parametrize(
    ("budget_usd", "decided", "better"),
    [
        (150, "slow", "fast"),
        (None, "slow", "faster"),
        (110, "slow", None),  # that is the decision itself
        (110, None, "slow"),  # where nothing can be decided, what is expected to fit is named, too
        (100, None, None),
    ],
)
def test_the_fastest_measured_one_that_is_expected_within_the_limits(
    budget_usd: float | None, decided: str | None, better: str | None
) -> None:
    found = better_point(POINTS, Goal(Objective.FASTEST, budget_usd), decided)
    assert (found.label if found else None) == better


def test_a_little_better_is_not_worth_a_search_and_a_knee_is_not_one_figure() -> None:
    alike = [point("slow", 48, 105), point("fast", 47, 110)]
    assert better_point(alike, Goal(Objective.FASTEST, 150), "slow") is None
    assert better_point(POINTS, Goal(Objective.KNEE, 150), "slow") is None
