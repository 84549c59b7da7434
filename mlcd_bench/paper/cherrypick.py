"""Fig. 14: CherryPick, on a space trimmed in its favour, with a deadline of 20 hours."""

from __future__ import annotations

from mlcd_bench.paper.cloud import FEW_TYPES, testbed, within
from mlcd_bench.paper.entrants import CONVBO, HETERBO, NET_VALUE, OPT, OURS, SHIPPED, Named, better_half
from mlcd_bench.paper.measures import advantage, keeps_limit, passes_limit
from mlcd_bench.paper.study import Case, Claim, Study, Unit
from mlcd_bench.problems import Scenario
from mlcd_bench.simulated import JOBS

FEW, MANY = "3 types", "25 types"
CHERRYPICK = Named("cherrypick, best types", "cherrypick", sees=better_half)


def _cases(seed: int) -> list[Case]:
    job, deadline = JOBS["char-rnn"], Scenario.CHEAPEST_BY_DEADLINE
    return [
        Case(FEW, within(testbed(job, seed, *FEW_TYPES), deadline, 20.0)),
        Case(MANY, within(testbed(job, seed), deadline, 20.0)),
    ]


def _claims(case: str) -> tuple[Claim, ...]:
    return (
        Claim(
            "Fig. 14", f"CherryPick runs over the budget even with narrowed search space ({case})", "over 20 h", 1.0,
            (CHERRYPICK.label,), Unit.SHARE, passes_limit(case),
        ),
        Claim(
            "Fig. 14", f"HeterBO achieves the training time limit ({case})", "keeps 20 h", 1.0, OURS, Unit.SHARE,
            keeps_limit(case),
        ),
        Claim(
            "Fig. 14", f"with low profiling cost: against ConvBO ({case})", "lower", None, OURS, Unit.TIMES,
            advantage(case, CONVBO.label, "probing_usd", 1.0),
        ),
        Claim(
            "Fig. 14", f"with low profiling cost: against CherryPick ({case})", "lower", None, OURS, Unit.TIMES,
            advantage(case, CHERRYPICK.label, "probing_usd", 1.0),
        ),
        Claim(
            "Fig. 14", f"HeterBO's total cost is below CherryPick's: the figure ({case})", "lower", None, OURS,
            Unit.TIMES, advantage(case, CHERRYPICK.label, "total_usd", 1.0),
        ),
    )  # fmt: skip


STUDY = Study(
    "cherrypick",
    (14,),
    "HeterBO, ConvBO and CherryPick within 20 h",
    "Char-RNN, TensorFlow, cheapest within 20 h; the worse performing types were taken out of CherryPick's space.",
    "The simulated Char-RNN (3.3 M parameters, parameter server) on Fig. 1's three types and on the 25 of the paper's "
    "families, scaled so that 20 h are 1.6 times the least possible. CherryPick searches the better half of the types, "
    "by their best cost within the deadline.",
    _cases,
    (CONVBO, CHERRYPICK, HETERBO, NET_VALUE, SHIPPED, OPT),
    (*_claims(FEW), *_claims(MANY)),
)
