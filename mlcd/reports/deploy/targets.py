"""The tools that a serving run's decision is written for."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mlcd.reports.deploy.compose import compose
from mlcd.reports.deploy.deployment import Deployment
from mlcd.reports.deploy.files import Export
from mlcd.reports.deploy.kserve import kserve
from mlcd.reports.deploy.triton import triton

TARGETS: Mapping[str, Callable[[Deployment], Export]] = {"kserve": kserve, "triton": triton, "compose": compose}
