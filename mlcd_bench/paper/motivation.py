"""Fig. 1, 2 and 5: why the choice matters, and what conventional BO costs."""

from __future__ import annotations

from itertools import accumulate, pairwise

from mlcd.catalog import load_offers
from mlcd_bench.paper.cloud import fastest, testbed
from mlcd_bench.paper.entrants import CONVBO
from mlcd_bench.paper.measures import at_least, every_run
from mlcd_bench.paper.study import Case, Claim, Measured, Runs, Study, Unit
from mlcd_bench.problems import Problem, training_hours
from mlcd_bench.simulated import JOBS

CHAR_RNN, RESNET, ALEXNET = "Char-RNN", "ResNet", "AlexNet"
SAME_PRICE = (("c5.xlarge", 40), ("c5.4xlarge", 10), ("p2.xlarge", 9))


def _cases(seed: int) -> list[Case]:
    jobs = {CHAR_RNN: "char-rnn", RESNET: "resnet", ALEXNET: "alexnet"}
    return [Case(label, fastest(testbed(JOBS[name], seed))) for label, name in jobs.items()]


def _prices(runs: Runs, who: str) -> Measured:
    """The paper's number within one percent: prices have hardly changed."""
    usd = {offer.instance_type: offer.usd_per_hour for offer in load_offers(("aws",))}
    return at_least([usd["p2.8xlarge"] / usd["c5.xlarge"]], 42)


def _slowest_over_fastest(runs: Runs, who: str) -> Measured:
    """Of the three clusters with about the same price an hour."""
    times = [_hours(runs.problems[CHAR_RNN, seed]) for seed in range(runs.seeds)]
    return at_least([max(hours) / min(hours) for hours in times], 3.0)


def _middle_wins(runs: Runs, who: str) -> Measured:
    """Whether 10 x c5.4xlarge is the fastest of the three."""
    times = [_hours(runs.problems[CHAR_RNN, seed]) for seed in range(runs.seeds)]
    return every_run(hours[1] == min(hours) for hours in times)


def _hours(problem: Problem) -> list[float]:
    places = {(c.offer.instance_type, c.nodes): c for c in problem.recording.points}
    found = [training_hours(problem.recording, places[place]) for place in SAME_PRICE]
    return [hours for hours in found if hours is not None]


def _probing_over_training(runs: Runs, who: str) -> Measured:
    chose = [r for r in runs.of(RESNET, who) if r.ratio is not None]
    return at_least([r.probing_hours / (r.total_hours - r.probing_hours) for r in chose], 0.8, none=0.0)


def _idle_steps(runs: Runs, who: str) -> Measured:
    """The share of probes after the first that do not improve on the best so far."""
    shares = []
    for result in runs.of(ALEXNET, who):
        points = runs.problems[ALEXNET, result.seed].recording.points
        rates = {(c.offer.instance_type, c.nodes): p.samples_per_s or 0.0 for c, p in points.items()}
        best = list(accumulate((rates[probe["instance_type"], probe["nodes"]] for probe in result.probes), max))
        if len(best) > 1:
            idle = sum(after <= before for before, after in pairwise(best))
            shares.append(idle / (len(best) - 1))
    return at_least(shares, 0.5, none=0.0)


CLAIMS = (
    Claim(
        "Fig. 1a", "p2.8xlarge [is] 42.5x more expensive than CPU instance c5.xlarge", "42.5x", 42.5, ("catalog",),
        Unit.TIMES, _prices,
    ),
    Claim(
        "Fig. 1b", "with the same monetary cost, the right deployment scheme can be 3x faster", "3x", 3.0,
        ("cloud",), Unit.TIMES, _slowest_over_fastest,
    ),
    Claim(
        "Fig. 1b", "the most performant deployment is 10 c5.4xlarge, not 40 c5.xlarge nor 9 p2.xlarge", "10 c5.4xlarge",
        1.0, ("cloud",), Unit.SHARE, _middle_wins,
    ),
    Claim(
        "Fig. 2", "[ConvBO's] profiling time is quite high, almost on par with training", "about 1x", 1.0,
        (CONVBO.label,), Unit.TIMES, _probing_over_training,
    ),
    Claim(
        "Fig. 5", "most profiling steps [of ConvBO] do not bring benefits", "most", 0.5, (CONVBO.label,), Unit.SHARE,
        _idle_steps,
    ),
)  # fmt: skip

STUDY = Study(
    "motivation",
    (1, 2, 5),
    "why the choice matters, and what conventional BO pays for it",
    "Char-RNN on three clusters of one price (Fig. 1); ConvBO's profiling of ResNet (Fig. 2) and AlexNet (Fig. 5).",
    "The simulated jobs on the 25 types of the paper's families, 3.75 h at best; 'almost on par' is taken as 0.8 and "
    "more. The prices are those of the packaged catalog.",
    _cases,
    (CONVBO,),
    CLAIMS,
)
