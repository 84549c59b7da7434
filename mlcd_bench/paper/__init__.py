"""The experiments of the HeterBO paper as named studies on the simulated cloud.

Yi et al., 'Not All Explorations Are Equal', IPDPS 2020. Results: docs/methods/paper.md.
"""

from __future__ import annotations

import re

from mlcd.core.errors import UnknownName
from mlcd_bench.paper import (
    budget_sweep,
    cherrypick,
    model_sizes,
    motivation,
    paleo,
    random_search,
    search_traces,
    three_scenarios,
)
from mlcd_bench.paper.conduct import Outcome, conclude, conduct, play, size
from mlcd_bench.paper.study import Study, Unit, Verdict

STUDIES = {
    study.name: study
    for study in (
        motivation.STUDY,
        three_scenarios.STUDY,
        random_search.STUDY,
        paleo.STUDY,
        cherrypick.STUDY,
        search_traces.STUDY,
        *budget_sweep.STUDIES,
        model_sizes.STUDY,
    )
}
"""Every study, in the order of the paper's figures."""


def find(name: str) -> list[Study]:
    """The study of a name, those with a figure ('fig-9', 'fig9', '9'), or 'all'."""
    if name == "all":
        return list(STUDIES.values())
    if name in STUDIES:
        return [STUDIES[name]]
    number = re.fullmatch(r"(?:fig(?:ure)?[-. ]*)?(\d+)", name.lower())
    studies = [study for study in STUDIES.values() if number and int(number[1]) in study.figures]
    if not studies:
        figures = sorted({figure for study in STUDIES.values() for figure in study.figures})
        raise UnknownName("study", name, ["all", *STUDIES, *(f"fig-{figure}" for figure in figures)])
    return studies


__all__ = ["STUDIES", "Outcome", "Study", "Unit", "Verdict", "conclude", "conduct", "find", "play", "size"]
