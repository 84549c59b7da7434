"""Fig. 12: random search by its number of probes, against HeterBO."""

from __future__ import annotations

from mlcd_bench.paper.cloud import fastest, testbed
from mlcd_bench.paper.entrants import HETERBO, NET_VALUE, OURS
from mlcd_bench.paper.measures import advantages, at_least, median
from mlcd_bench.paper.references import RandomProbes
from mlcd_bench.paper.study import Case, Claim, Measured, Runs, Study, Unit
from mlcd_bench.simulated import JOBS

CASE = "fastest"
PROBES = (1, 2, 3, 5, 8, 12, 20, 30)
FEW, MANY = RandomProbes(PROBES[0]).label, RandomProbes(PROBES[-1]).label


def _cases(seed: int) -> list[Case]:
    return [Case(CASE, fastest(testbed(JOBS["resnet"], seed, "c5.4xlarge")))]


def _scatter(runs: Runs, who: str) -> Measured:
    """The spread (90th over 10th percentile) of totals with few probes over that with many."""
    few, many = (at_least([r.total_hours for r in runs.of(CASE, label)], 1.0) for label in (FEW, MANY))
    if few.low and few.high and many.low and many.high:
        return at_least([(few.high / few.low) / (many.high / many.low)], 1.5)
    return at_least([], 1.5)


def _growth(runs: Runs, who: str) -> Measured:
    """The total with the most probes over that with the best number of probes, seed by seed."""
    labels = [RandomProbes(k).label for k in PROBES]
    best = min(labels, key=lambda label: median([r.total_hours for r in runs.of(CASE, label)]) or 0.0)
    return at_least(advantages(runs, CASE, best, MANY, "total_hours"), 1.0)


def _worst_duel(runs: Runs, who: str) -> Measured:
    """The advantage over the best number of probes: 'in all cases' is as strong as this case."""
    duels = [at_least(advantages(runs, CASE, who, RandomProbes(k).label, "total_hours"), 1.0) for k in PROBES]
    return min(duels, key=lambda duel: duel.value if duel.value is not None else 0.0)


CLAIMS = (
    Claim(
        "Fig. 12", "Random search exhibits significant variance when the number of profiling steps is small",
        "wider with few", None, (FEW,), Unit.TIMES, _scatter,
    ),
    Claim(
        "Fig. 12", "When larger number of steps are used, [...] results in larger total time", "longer with many",
        None, (MANY,), Unit.TIMES, _growth,
    ),
    Claim(
        "Fig. 12", "HeterBO consistently out performs random search in all cases", "faster than each", None, OURS,
        Unit.TIMES, _worst_duel,
    ),
)  # fmt: skip

STUDY = Study(
    "random-search",
    (12,),
    "random search by number of probes, and HeterBO",
    "Total time of random search with different numbers of profiling steps, as box plots. The text names neither job "
    "nor numbers; the figure stands with the three scenarios.",
    "Scenario 1 of those: the simulated ResNet on 1..100 c5.4xlarge, 3.75 h at best; 1 to 30 random probes. 'Each' is "
    "judged by the number of probes that does best against HeterBO. 'Wider' is 1.5 times and more.",
    _cases,
    (*(RandomProbes(k) for k in PROBES), HETERBO, NET_VALUE),
    CLAIMS,
    seeds=50,
)
