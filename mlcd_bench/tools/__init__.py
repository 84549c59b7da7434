"""Popular optimisers (Optuna, SMAC ...) as entrants of `mlcd bench train`. The product does not use them.

Each is a thin adapter, a strategy like any other, imported on demand, since its package is an optional extra.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

from mlcd.core.errors import MissingExtra
from mlcd.core.strategy import Strategy


def _optuna_tpe(seed: int) -> Strategy:
    from mlcd_bench.tools.optuna import OptunaTPE

    return OptunaTPE(seed)


def _optuna_gp(seed: int) -> Strategy:
    import torch  # noqa: F401  # Optuna would import it late, in the middle of a comparison

    from mlcd_bench.tools.optuna import OptunaGP

    return OptunaGP(seed)


def _scikit_optimize(seed: int) -> Strategy:
    from mlcd_bench.tools.scikit_optimize import ScikitOptimize

    return ScikitOptimize(seed)


def _smac(seed: int) -> Strategy:
    from mlcd_bench.tools.smac import SMAC3

    return SMAC3(seed)


def _botorch(seed: int) -> Strategy:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # gpytorch still compiles the way that torch now deprecates
        from mlcd_bench.tools.botorch import BoTorch

    return BoTorch(seed)


TOOLS: dict[str, Callable[[int], Strategy]] = {
    "optuna-tpe": _optuna_tpe,
    "optuna-gp": _optuna_gp,
    "scikit-optimize": _scikit_optimize,
    "smac3": _smac,
    "botorch": _botorch,
}
"""How to make each from a seed."""


def tool(name: str, seed: int) -> Strategy:
    """The adapter of that name; `MissingExtra` where its tool is not installed."""
    try:
        return TOOLS[name](seed)
    except ModuleNotFoundError:
        raise MissingExtra(f"the entrant '{name}'", "bench") from None
