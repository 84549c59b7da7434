"""Baselines for serving, each made from knowledge of other models and a seed."""

from mlcd_bench.baselines.serve.aiconfigurator import Aiconfigurator
from mlcd_bench.baselines.serve.ernest import Ernest
from mlcd_bench.baselines.serve.exhaustive import Exhaustive
from mlcd_bench.baselines.serve.falcon import Falcon
from mlcd_bench.baselines.serve.gp_ei import GpEi
from mlcd_bench.baselines.serve.heterbo import HeterBO
from mlcd_bench.baselines.serve.morphling import Morphling
from mlcd_bench.baselines.serve.nearest import Nearest
from mlcd_bench.baselines.serve.popular import Popular
from mlcd_bench.baselines.serve.portfolio import Portfolio
from mlcd_bench.baselines.serve.random_trials import RandomTrials
from mlcd_bench.baselines.serve.roofline import Roofline
from mlcd_bench.baselines.serve.vesta import Vesta

__all__ = [
    "Aiconfigurator",
    "Ernest",
    "Exhaustive",
    "Falcon",
    "GpEi",
    "HeterBO",
    "Morphling",
    "Nearest",
    "Popular",
    "Portfolio",
    "RandomTrials",
    "Roofline",
    "Vesta",
]
