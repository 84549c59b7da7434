"""How claims are measured, and when they hold.

advantage   a rival's number over ours, of the same seed and so on the same cloud; 0 where we chose nothing
at least    holds from the paper's number on; 'smaller' while it is still an advantage
at most     holds up to a bound
every run   holds if all runs do it, 'in part' if half do
optimum     holds within 2 %, 'nearly' within 10 %
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import inf, isfinite
from typing import Literal

import numpy as np

from mlcd.core.job import Objective
from mlcd_bench.paper.study import Measure, Measured, Runs, Verdict
from mlcd_bench.train import Result

OPTIMAL = 1.02
"""'Optimal' means within 2 %, which is less than the noise of a probe."""
NEAR = 1.10
"""'Almost optimal'."""


def advantage(case: str, rival: str, of: str, paper_value: float) -> Measure:
    """How many times more the rival uses: 'probing_hours', 'probing_usd', 'total_hours' or 'total_usd'."""

    def measure(runs: Runs, who: str) -> Measured:
        return at_least(advantages(runs, case, who, rival, of), paper_value)

    return measure


def saving(case: str, rival: str, of: str, paper_value: float) -> Measure:
    """The share of the rival's number that is saved."""

    def measure(runs: Runs, who: str) -> Measured:
        shares = [1 - 1 / times if times else -inf for times in advantages(runs, case, who, rival, of)]
        return at_least(shares, paper_value, none=0.0)

    return measure


def keeps_limit(*cases: str) -> Measure:
    """The share of runs that choose something and end within the limit."""

    def measure(runs: Runs, who: str) -> Measured:
        return every_run(r.ratio is not None and not r.violated for case in cases for r in runs.of(case, who))

    return measure


def never_over(*cases: str) -> Measure:
    """The share of runs that are not over the limit. A refusal counts as keeping it."""

    def measure(runs: Runs, who: str) -> Measured:
        return every_run(not r.violated for case in cases for r in runs.of(case, who))

    return measure


def over_limit(case: str, paper_value: float) -> Measure:
    """The total as a multiple of the limit; the claim is that it exceeds the limit by the paper's number."""

    def measure(runs: Runs, who: str) -> Measured:
        problem = runs.problems[case, 0]
        deadline = problem.job.goal.deadline_s is not None
        return at_least(
            [(r.total_hours if deadline else r.total_usd) / (r.limit or inf) for r in runs.of(case, who)], paper_value
        )

    return measure


def passes_limit(*cases: str) -> Measure:
    """The share of runs that exceed the limit; the claim is that they do."""

    def measure(runs: Runs, who: str) -> Measured:
        return every_run(r.violated for case in cases for r in runs.of(case, who))

    return measure


def optimality(case: str, bound: float = OPTIMAL) -> Measure:
    """Training alone on the chosen configuration over the optimum's, in the objective."""

    def measure(runs: Runs, who: str) -> Measured:
        outcome = at_most([training_ratio(runs, case, r) for r in runs.of(case, who)], bound)
        near = outcome.verdict is Verdict.FAILS and outcome.value is not None and outcome.value <= NEAR
        return replace(outcome, verdict=Verdict.NEARLY) if near else outcome

    return measure


def misses_optimum(case: str) -> Measure:
    """As `optimality`, for the claim that the optimum is missed."""

    def measure(runs: Runs, who: str) -> Measured:
        return at_least([training_ratio(runs, case, r) for r in runs.of(case, who)], OPTIMAL, none=OPTIMAL)

    return measure


def steps(case: str, paper_value: float) -> Measure:
    """The number of probes, for the claim of at most so many. A search without a choice has none."""

    def measure(runs: Runs, who: str) -> Measured:
        return at_most([len(r.probes) if r.chosen is not None else inf for r in runs.of(case, who)], paper_value)

    return measure


def advantages(runs: Runs, case: str, who: str, rival: str, of: str) -> list[float]:
    """The rival's number over ours for each seed. A rival that chose nothing that runs has no total to compare."""
    pairs = zip(runs.of(case, who), runs.of(case, rival), strict=True)
    compared = [(a, b) for a, b in pairs if b.ratio is not None or of.startswith("probing")]
    return [getattr(b, of) / getattr(a, of) if a.ratio is not None else 0.0 for a, b in compared]


def training_ratio(runs: Runs, case: str, result: Result) -> float:
    """The ratio without the probes; infinite if nothing was chosen."""
    if result.ratio is None:
        return inf
    if runs.problems[case, result.seed].job.goal.objective is Objective.CHEAPEST:
        return (result.total_usd - result.probing_usd) / result.oracle_usd
    return (result.total_hours - result.probing_hours) / result.oracle_hours


def at_least(values: Sequence[float], paper_value: float, none: float = 1.0) -> Measured:
    """`none`: the value without any effect."""
    middle = median(values)
    if middle is None or middle <= none:
        return _measured(values, Verdict.FAILS)
    return _measured(values, Verdict.HOLDS if middle >= paper_value else Verdict.SMALLER)


def at_most(values: Sequence[float], bound: float) -> Measured:
    """The median stays within a bound."""
    middle = median(values)
    return _measured(values, Verdict.HOLDS if middle is not None and middle <= bound else Verdict.FAILS)


def every_run(did: Iterable[bool]) -> Measured:
    """A share of runs, without a spread."""
    answers = list(did)
    if not answers:
        return Measured(None, None, None, Verdict.FAILS)
    share = sum(answers) / len(answers)
    verdict = Verdict.HOLDS if share == 1 else Verdict.IN_PART if share >= 0.5 else Verdict.FAILS
    return Measured(share, None, None, verdict)


def median(values: Sequence[float]) -> float | None:
    """None without values, or if half of the runs chose nothing."""
    return _quantile(values, 0.5)


def _measured(values: Sequence[float], verdict: Verdict) -> Measured:
    return Measured(_quantile(values, 0.5), _quantile(values, 0.1), _quantile(values, 0.9), verdict)


def _quantile(values: Sequence[float], q: float) -> float | None:
    if not values:
        return None
    # A run that chose nothing is infinite. The mean of a number and infinity is undefined.
    worse: Literal["higher", "lower", "linear"] = "higher" if max(values) == inf else "linear"
    if min(values) == -inf:
        worse = "lower"
    quantile = float(np.quantile(np.asarray(values, dtype=float), q, method=worse))
    return quantile if isfinite(quantile) else None
