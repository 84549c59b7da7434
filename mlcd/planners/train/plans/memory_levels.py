"""The memory parts of many plans as arrays, and their total at given levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from mlcd.core.configuration import Floats, Mask
from mlcd.planners.train.nouns import Adapter, Sharding
from mlcd.planners.train.plans.memory_parts import PURE, Needed, room_gb, stages_gb
from mlcd.planners.train.plans.memory_prior import LEVELS
from mlcd.planners.train.plans.run_spec import RunSpec

Rows = NDArray[np.intp]
PARTS = tuple(field.name for field in fields(Needed))
VALUES = attrgetter(*PARTS)
UPDATE, MASTERS = LEVELS.index("update"), LEVELS.index("masters")
AT = {name: place for place, name in enumerate(PARTS)}


@dataclass(frozen=True)
class Sizes:
    """Memory parts of N plans. `parts`: (2, N, parts) of the first and the last stage; `room`: (N,) GB of a GPU.

    `masters`: whether some frameworks would keep fp32 masters although 16 bits were requested. `kernels`: index into
    `names`. `way`: equal for plans with the same model, adapter, precision, attention and kernels.
    """

    parts: Floats
    room: Floats
    masters: Mask
    kernels: Rows
    way: Rows
    names: tuple[str, ...]

    def of(self, rows: Rows) -> Sizes:
        """The same of some rows."""
        parts, room, masters = self.parts[:, rows], self.room[rows], self.masters[rows]
        return Sizes(parts, room, masters, self.kernels[rows], self.way[rows], self.names)

    @property
    def tensors_room(self) -> Floats:
        """GB left for tensors."""
        return np.asarray(np.maximum(self.room - self.parts[0, :, AT["framework"]], 1e-3))


def sizes_of(runs: Sequence[RunSpec]) -> Sizes:
    """The memory parts of these runs."""
    stages = [stages_gb(spec) for spec in runs]
    parts = np.array([[VALUES(of[0]) for of in stages], [VALUES(of[-1]) for of in stages]], dtype=float)
    names: dict[str, int] = {}
    ways: dict[tuple[object, ...], int] = {}
    return Sizes(
        parts=parts.reshape(2, len(runs), len(PARTS)),
        room=np.array([room_gb(spec) for spec in runs], dtype=float),
        masters=np.array([_may_keep_masters(spec) for spec in runs], dtype=bool),
        kernels=np.array([names.setdefault(each.plan.kernels, len(names)) for each in runs], dtype=np.intp),
        way=np.array([ways.setdefault(_way(each), len(ways)) for each in runs], dtype=np.intp),
        names=tuple(names),
    )


def _way(spec: RunSpec) -> tuple[object, ...]:
    plan = spec.plan
    return spec.architecture, plan.adapter, plan.precision, plan.attention, plan.kernels


def _may_keep_masters(spec: RunSpec) -> bool:
    plan = spec.plan
    return plan.sharding is Sharding.ZERO3 and plan.precision in PURE and plan.adapter is Adapter.FULL


def tensors_gb(levels: Floats, sizes: Sizes) -> Floats:
    """Peak GB of tensors. `levels`: (..., levels) in the order of LEVELS, for each plan or broadcast to all."""
    factors = _factors(levels)
    first = _of_stage(factors, sizes.parts[0], sizes.masters)
    if np.array_equal(sizes.parts[0], sizes.parts[1]):
        return first
    return np.asarray(np.maximum(first, _of_stage(factors, sizes.parts[1], sizes.masters)))


def _factors(levels: Floats) -> Floats:
    """Factors of the parts: (levels, ...). `update` is a share, because an optimizer copies at most everything."""
    factors = np.moveaxis(np.exp(levels), -1, 0)
    factors[UPDATE] = factors[UPDATE] / (1 + factors[UPDATE])
    return factors


def _of_stage(factors: Floats, parts: Floats, masters: Mask) -> Floats:
    state, update, stream, saved, plain, logits, layer, kept, _ = factors
    of = {name: parts[:, place] for name, place in AT.items()}
    if masters.any():
        state = np.where(masters, state * kept, state)
    passes = stream * of["stream"] + saved * (of["saved"] + plain * of["plain"])
    passes = passes + np.maximum(logits * of["logits"], layer * (of["layer"] + plain * of["layer_plain"]) + of["head"])
    passes = passes + state * (of["held"] * of["gradients"])
    stepping = (state + update) * of["gradients"]
    return np.asarray(state * (of["weights"] + of["optimizer"]) + np.maximum(stepping, passes))


def busy_share(levels: Floats, sizes: Sizes) -> Floats:
    """Share of that peak which is not state but temporary, and less predictable."""
    factors = _factors(levels)
    state = np.where(sizes.masters, factors[0] * factors[MASTERS], factors[0])
    stays = sizes.parts[:, :, [AT[name] for name in ("weights", "gradients", "optimizer")]].sum(axis=2).max(axis=0)
    return np.asarray(np.clip(1 - state * stays / tensors_gb(levels, sizes), 0.0, 1.0))
