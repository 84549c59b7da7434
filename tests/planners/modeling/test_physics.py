"""The modelled time of a data-parallel step."""

from __future__ import annotations

import numpy as np
import pytest

from mlcd.core.configuration import Offer
from mlcd.core.job import Communication
from mlcd.planners.modeling.physics import Model, step_s


@pytest.mark.parametrize(
    ("gpu", "linked"), [("V100", True), ("B300", True), ("MI300X", True), ("V100-PCIE", False), ("L40S", False)]
)
def test_gpus_of_a_node_use_nvlink_only_if_they_have_it(gpu: str, linked: bool) -> None:
    node = Offer("node", 1.0, 8.0, 64.0, gpu, 8, 10_000.0, 80.0, network_gbps=100.0)
    model = Model(parameters=1e9, flops_per_sample=1e6, global_batch=8)
    seconds = step_s(model, Communication.ALL_REDUCE, node, np.ones(1), 0.5)[0]
    assert bool(seconds < 0.2) == linked
