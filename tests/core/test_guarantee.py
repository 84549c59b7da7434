"""Probes never use up what is reserved to finish, also not by widening the margin against the winner's curse."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from mlcd.core.configuration import Choice, Offer, ProbeTime, Space
from mlcd.core.guarantee import allowed_probes, certifiable, refusal
from mlcd.core.history import History
from mlcd.core.job import Goal, Job
from mlcd.core.measurement import Measurement, Outcome

SPACE = Space((Choice(Offer("node", 3.6, 4, 16), tuple(range(1, 11))),), ProbeTime(60.0, 6.0), startup_limit_s=60.0)
rates = st.floats(50.0, 150.0)


def probed(history: History, place: int, rate: float | None, share: float = 1.0) -> History:
    """After a probe that takes this share of the worst."""
    where = SPACE.configurations[place]
    seconds, usd = (share * each for each in SPACE.worst_probe(where))
    outcome = Outcome.OK if rate is not None else Outcome.OUT_OF_MEMORY
    measurement = Measurement(where, outcome, seconds, usd, rate, 0.03 if rate is not None else 0.0)
    gone = replace(history, spent_usd=history.spent_usd + usd, elapsed_s=history.elapsed_s + seconds)
    return replace(gone, measurements=(*history.measurements, measurement))


@given(
    st.lists(st.one_of(st.none(), rates), min_size=1, max_size=6), st.one_of(st.none(), rates), st.floats(9_000, 25_000)
)
def test_an_allowed_probe_leaves_something_certifiable_whatever_its_result(seen, rate, deadline_s):
    job, history = Job("job", 1e6, Goal(deadline_s=deadline_s)), History()
    for place, each in enumerate(seen):
        history = probed(history, place, each)
    mask = allowed_probes(job, SPACE, history)
    for place, where in enumerate(SPACE.configurations):
        assert mask[place] == (refusal(job, SPACE, history, [where]) is None)
    place = len(seen)
    if certifiable(job, SPACE, history) and mask[place]:
        assert certifiable(job, SPACE, probed(history, place, rate))


@given(st.lists(rates, min_size=1, max_size=4), st.floats(9_000, 25_000))
def test_so_does_a_round_of_probes(seen, deadline_s):
    job, history = Job("job", 1e6, Goal(deadline_s=deadline_s)), History()
    for place, each in enumerate(seen):
        history = probed(history, place, each)
    at_once = SPACE.configurations[len(seen) : len(seen) + 3]
    if certifiable(job, SPACE, history) and refusal(job, SPACE, history, at_once) is None:
        after = history
        for place in range(len(seen), len(seen) + 3):
            after = replace(probed(after, place, 60.0), elapsed_s=history.elapsed_s)
        assert certifiable(job, SPACE, replace(after, elapsed_s=history.elapsed_s + SPACE.worst_probe(at_once[-1])[0]))
