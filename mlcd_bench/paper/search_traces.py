"""Fig. 15-17: the steps of a search: Char-RNN, and BERT on two platforms."""

from __future__ import annotations

from dataclasses import replace

from mlcd_bench.paper.cloud import FEW_GPU_TYPES, FEW_TYPES, testbed, within
from mlcd_bench.paper.entrants import HETERBO, NET_VALUE, OURS
from mlcd_bench.paper.measures import keeps_limit, optimality, steps
from mlcd_bench.paper.study import Case, Claim, Study, Unit
from mlcd_bench.problems import Scenario
from mlcd_bench.simulated import JOBS

CHAR_RNN, BERT_TF, BERT_MX = "Char-RNN, TensorFlow, $120", "BERT, TensorFlow, $100", "BERT, MXNet, $120"
BERT = replace(JOBS["bert"], hints=replace(JOBS["bert"].hints, global_batch=32))
"""Fine-tuning (Devlin et al., 2018: batches of 16 and 32): BERT can do nothing else for $100."""
PLATFORM = 1_000
"""Added to the seed for MXNet: we simulate no framework, so a second one is a second draw of efficiencies."""


def _cases(seed: int) -> list[Case]:
    budget = Scenario.FASTEST_WITHIN_BUDGET
    return [
        Case(CHAR_RNN, within(testbed(JOBS["char-rnn"], seed, *FEW_TYPES), budget, 120.0)),
        Case(BERT_TF, within(testbed(BERT, seed, *FEW_GPU_TYPES), budget, 100.0)),
        Case(BERT_MX, within(testbed(BERT, seed + PLATFORM, *FEW_GPU_TYPES), budget, 120.0)),
    ]


def _similar(figure: str, case: str) -> tuple[Claim, ...]:
    return (
        Claim(
            figure, "Similar exploring and exploiting procedures can be seen (so: as few steps)", "9 steps", 9.0,
            OURS, Unit.COUNT, steps(case, 9.0),
        ),
        Claim(
            figure, "How HeterBO searches for the optimal BERT configuration", "the optimum", 1.0, OURS, Unit.TIMES,
            optimality(case),
        ),
        Claim(figure, "with the budget in mind", "keeps it", 1.0, OURS, Unit.SHARE, keeps_limit(case)),
    )  # fmt: skip


CLAIMS = (
    Claim(
        "Fig. 15", "for training Char-[R]NN in 9 steps (the number alone)", "9 steps", 9.0, OURS,
        Unit.COUNT, steps(CHAR_RNN, 9.0),
    ),
    Claim(
        "Fig. 15", "HeterBO finds the optimal configuration", "the optimum", 1.0, OURS, Unit.TIMES,
        optimality(CHAR_RNN),
    ),
    Claim("Fig. 15", "with a budget of $120 in mind", "keeps $120", 1.0, OURS, Unit.SHARE, keeps_limit(CHAR_RNN)),
    *_similar("Fig. 16", BERT_TF),
    *_similar("Fig. 17", BERT_MX),
)  # fmt: skip

STUDY = Study(
    "search-traces",
    (15, 16, 17),
    "the steps of a search: Char-RNN, and BERT on two platforms",
    "Char-RNN on TensorFlow ($120), BERT with ring all-reduce on TensorFlow ($100) and MXNet ($120). The text has "
    "three first points, so three types, but not their names.",
    "Three types each: for Char-RNN those of Fig. 1 (c5.xlarge, c5.4xlarge, p2.xlarge); for BERT c5n.4xlarge, "
    "p2.xlarge, p3.2xlarge, and a batch of 32. A platform is a draw of how efficient each type is. Limits are 1.6 "
    "times the least possible. One node cannot hold BERT here: such probes fail and are billed.",
    _cases,
    (HETERBO, NET_VALUE),
    CLAIMS,
    traced=OURS,
)
