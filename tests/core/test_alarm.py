"""A final run that is slower than certified, or beyond its work, is warned about at once, and only once."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcd.core.alarm import RunAlarm, Trouble
from mlcd.core.configuration import Configuration, Offer
from mlcd.core.history import History
from mlcd.core.job import Goal, Job
from mlcd.core.measurement import Measurement, Outcome

PLACE = Configuration(Offer("x", 3.6, 1, 1), 1)
HOUR = 3_600.0
CERTIFIED = Measurement(PLACE, Outcome.OK, 300.0, 0.3, 100.0, 0.01)
GOAL = Goal(budget_usd=45.0, deadline_s=12 * HOUR)
JOB = Job("job", 100.0 * 10 * HOUR, GOAL, checkpoints=True)
SLOW_RATE = 97.0
BEFORE = History((CERTIFIED,), spent_usd=1.0, elapsed_s=0.5 * HOUR)


def so_far(hours: float, done_hours: float, rate: float | None, error: float = 0.01, detail: str = "") -> Measurement:
    """After so many hours, with the work of so many hours at the certified rate done."""
    done = 100.0 * HOUR * done_hours
    return Measurement(
        PLACE, Outcome.OK, hours * HOUR, 3.6 * hours, rate, error if rate else 0.0, samples_done=done, detail=detail
    )


def alarm(**changed: object) -> RunAlarm:
    return replace(RunAlarm(JOB, BEFORE, SLOW_RATE), **changed)  # type: ignore[arg-type]


def test_a_run_at_its_certified_rate_is_silent() -> None:
    tell = alarm()
    assert [tell(so_far(h, h, rate)) for h, rate in ((0.1, None), (1, 100.0), (5, 98.0), (9, 103.0))] == [None] * 4


def test_a_run_too_slow_for_its_limits_is_warned_about_once_with_its_outlook() -> None:
    tell = alarm()
    words = tell(so_far(5, 5, 50.0))
    assert words is not None
    assert words.startswith("slower than the 97 that the certificate counts on: 50 samples/s ± 3 % now; ")
    assert "at this rate it ends after 15 h 30 m and $55.00 in all" in words
    assert "3 h 30 m past the deadline and $10.00 over the budget" in words
    assert words.endswith("it is stopped at the limit, with what it has saved")
    assert tell(so_far(6, 5.5, 50.0)) is None
    assert "its work is lost" in str(alarm(job=replace(JOB, checkpoints=False))(so_far(5, 5, 50.0)))


def test_a_slow_run_in_time_is_warned_about_and_again_when_it_becomes_late() -> None:
    tell = alarm()
    assert str(tell(so_far(9, 9, 50.0))).endswith(
        "at this rate it ends after 11 h 30 m and $40.60 in all, within the limits"
    )
    assert tell.trouble is Trouble.SLOW
    assert "past the deadline" in str(tell(so_far(9.5, 9.1, 20.0)))
    assert str(tell(so_far(9.6, 9.2, 110.0))).startswith("back at 110 samples/s: at this rate it ends after")


def test_a_slow_run_without_limits_is_warned_about_too() -> None:
    assert str(alarm(job=replace(JOB, goal=Goal()))(so_far(5, 5, 50.0))).endswith("in all, and there is no limit")


def test_a_rate_that_may_still_be_the_certified_one_is_no_alarm_and_none_ends_by_a_hair() -> None:
    tell = alarm()
    assert tell(so_far(5, 5, 90.0, error=0.05)) is None
    assert tell(so_far(5, 5, 90.0, error=0.01)) is not None
    assert tell(so_far(5, 5, 90.0, error=0.05)) is None, "slow as before, if less surely so"


def test_a_run_beyond_its_work_is_warned_about_with_both_numbers() -> None:
    tell = alarm(history=replace(BEFORE, measurements=(replace(CERTIFIED, saved_samples=HOUR * 100),)))
    assert tell(so_far(10, 10.4, 100.0)) is None
    words = str(tell(so_far(11, 11, 100.0)))
    assert "4,320,000 samples, 109 % of the 3,960,000 that `work` states: either `work` is too small" in words
    assert words.endswith("when it ends is not known, but it is stopped at the limit")
    assert tell(so_far(12, 12, 100.0)) is None


def test_reports_that_cannot_be_understood_are_warned_about_once() -> None:
    tell = alarm()
    assert str(tell(so_far(1, 1, None, detail="the samples start again"))).startswith(
        "the samples start again. The job"
    )
    assert [tell(so_far(2, 1, None)), tell(so_far(3, 1, 1.0))] == [None, None]


@given(st.lists(st.tuples(st.floats(1.0, 200.0), st.floats(0.0, 0.3)), max_size=40))
def test_whatever_the_rate_does_every_word_is_a_change(rates: list[tuple[float, float]]) -> None:
    tell = alarm()
    for hour, (rate, error) in enumerate(rates, start=1):
        before = tell.trouble
        words = tell(so_far(hour / 10, hour / 10, rate, error))
        assert (words is not None) == (tell.trouble is not before)
        if tell.trouble is Trouble.NONE:
            assert rate >= SLOW_RATE or before is Trouble.NONE


@pytest.mark.parametrize("rate", [None, 50.0])
def test_a_run_without_certificate_is_never_slower_than_certified(rate: float | None) -> None:
    assert alarm(slow_rate=None)(so_far(5, 5, rate)) is None
