"""A refusal names limits that are enough to resume the run: with them it is certified, with a little less not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from mlcd.core import drive
from mlcd.core.backend import Provenance
from mlcd.core.decision import Relaxation
from mlcd.core.guarantee import decide
from mlcd.core.job import Goal
from mlcd.core.ledger import Account, Book, Ledger, Started
from mlcd.core.ledger.resuming import raise_limits_command, resume_entry
from mlcd.core.place import Cloud
from mlcd.planners.train.net_value import NetValue
from mlcd.testing.clouds import bounded_cloud, job_on, random_goal, random_recording

SEEDS = st.integers(0, 2**31)


def searched(seed: int, *limits: str) -> tuple[Book, Cloud]:
    """A search on a made-up cloud, where these limits are less than the job takes at the best."""
    rng = np.random.default_rng(seed)
    recording = random_recording(rng)
    rates = {where: point.samples_per_s for where, point in recording.points.items() if point.samples_per_s}
    takes_s = {where: recording.work_samples / rate for where, rate in rates.items()}
    least = {"deadline_s": min(takes_s.values()), "budget_usd": min(where.usd(s) for where, s in takes_s.items())}
    goal = replace(random_goal(rng, recording), budget_usd=None, deadline_s=None)
    job = job_on(recording, replace(goal, **{name: least[name] * rng.uniform(0.5, 1.0) for name in limits}))
    cloud = bounded_cloud(recording, 0.05, seed)
    book = Ledger(None).begin(job.name, cloud.clock, Started(job, cloud.space, "test", Provenance.RECORDED, "test"))
    search(book, cloud)
    return book, cloud


def search(book: Book, cloud: Cloud) -> None:
    drive.search(NetValue(), book.account.job, cloud.space, cloud.profiler, book)


def ways(account: Account) -> list[Relaxation]:
    """Those that change the limits."""
    decision = account.decision
    assert decision is not None
    return [way for way in decision.relaxations if way.budget_usd is not None or way.deadline_s is not None]


def under(goal: Goal, way: Relaxation, share: float = 1.0) -> Goal:
    limits = {"budget_usd": way.budget_usd, "deadline_s": way.deadline_s}
    return replace(goal, **{name: share * limit for name, limit in limits.items() if limit is not None})


@given(SEEDS, st.sampled_from([("budget_usd",), ("deadline_s",), ("budget_usd", "deadline_s")]))
def test_a_run_resumes_with_exactly_its_relaxation_and_not_with_one_percent_less(seed, limits):
    book, cloud = searched(seed, *limits)
    account, found = book.account, ways(book.account)
    assume(found)
    way = found[-1]
    less = replace(account.job, goal=under(account.job.goal, way, 0.99))
    assert not decide(less, cloud.space, account.history, "less").certified
    entry = resume_entry(book.run, account, under(account.job.goal, way), cloud.clock.elapsed_s())
    assert entry is not None
    book.write(entry)
    search(book, cloud)
    decision = book.account.decision
    assert decision is not None
    assert decision.certified


@given(SEEDS)
def test_the_displayed_amount_is_enough_and_a_cent_less_is_not(seed):
    book, cloud = searched(seed, "budget_usd")
    account, found = book.account, ways(book.account)
    assume(found)
    shown = float(raise_limits_command(book.run, account).rpartition("--budget ")[2])
    for usd, enough in ((shown, True), (shown - 0.01, False)):
        job = replace(account.job, goal=replace(account.job.goal, budget_usd=usd))
        assert decide(job, cloud.space, account.history, "asked").certified is enough
