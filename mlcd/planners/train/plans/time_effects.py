"""Random effects in the log of step time: how a run differs from the step-time law.

    log y = log law + shared effects + effects of this model + e        each effect ~ N(0, v), e ~ t4(0, noise)

An effect is a level; or a factor on one part of the law (compute, memory, host, links, bubble); or a slope over a
feature of the run. Shared effects are learned from other models: those of the law's coefficients, of each word in the
name of the kernels, of a GPU, a precision, and a kind of adapter. A new model has its own effects of each kind, and a
smooth function of its plan (a Gaussian process) for what the law misses.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mlcd.core.configuration import Floats
from mlcd.planners.train.plans.memory_parts import feed_forward_width, gated, tied
from mlcd.planners.train.plans.run_spec import RunSpec
from mlcd.planners.train.plans.step_time_law import PARTS, SURE, TERMS, UNSURE

FEATURES = {
    "tokens": (9.0, 1.5), "sequence": (8.0, 1.5), "width": (8.0, 1.0), "tensor": (0.0, 1.0), "pipeline": (0.0, 1.5),
    "ranks": (1.0, 2.0), "again": (0.5, 0.5),
}  # fmt: skip
"""Features of a run (logs, except the last): center and unit. `width`: of a layer's part on one GPU."""
SMOOTH = {"bend": 1.5, "kink": 0.5}
"""Length scales of the smooth functions of the plan, in units of the features."""
LEVELS = ("model", "kernels", "gpu", "precision", "adapter")
"""A model has its own levels by these."""
UNSTEADY = ("host", "links", "bubble")
"""Parts of the law that also vary from run to run, with the load of the machine or the network."""
PLAIN = "eager"
"""The kernel word if no kernels are named."""
UNINFORMATIVE = frozenset({"", "fast", "kernels", "accelerated", "peft", "granite", "free"})
"""Words in names of kernels that only occur beside another, informative one."""

FUSED = frozenset({"triton", "megatron", "compile"})
"""Words for kernels that fuse many small operations."""
_TERMS_OF = {part: [list(TERMS).index(name) for name in terms] for part, terms in PARTS.items()}


def kernel_words(spec: RunSpec) -> tuple[str, ...]:
    """The words in the name of a run's kernels. Each has its own effects, so a new combination can be predicted."""
    words = dict.fromkeys(re.split(r"[-+ _]", re.sub(r"\bep\d+\b", "", spec.plan.kernels.lower())))
    return tuple(word for word in words if word not in UNINFORMATIVE) or (PLAIN,)


def form_of(spec: RunSpec) -> str:
    """How the code of a layer is written, inferred from sizes and kernels: libraries differ most in older models.

    Models with tied embeddings ('old') compute activation functions in many small kernels unless these are fused.
    """
    sizes = spec.architecture
    if any(word in FUSED for word in kernel_words(spec)):
        return "fused"
    if sizes.experts:
        return "experts"
    if gated(sizes):
        return "gated"
    return "old" if tied(sizes) else "plain"


@dataclass(frozen=True)
class Rows:
    """Runs with what their effects depend on. `models`: the model of each run, whose own effects apply."""

    runs: Sequence[RunSpec]
    models: Sequence[Hashable]
    shares: Floats

    @cached_property
    def parts(self) -> dict[str, Floats]:
        """Elasticity of the step with respect to each part of the law."""
        return {part: self.shares[:, terms].sum(axis=1) for part, terms in _TERMS_OF.items()}

    @cached_property
    def features(self) -> Floats:
        """A column for each of `FEATURES`."""
        raw = np.array([_features(spec) for spec in self.runs]).reshape(len(self.runs), len(FEATURES))
        middle, unit = np.array(list(FEATURES.values())).T
        return np.asarray((raw - middle) / unit)

    @cached_property
    def ids(self) -> Mapping[str, NDArray[np.int_]]:
        """For each kind of level, an id by row: rows with the same id share the level."""
        return {
            "model": _ids(self.models),
            "kernels": _ids(self.models, [each.plan.kernels for each in self.runs]),
            "gpu": _ids(self.models, [each.gpu.name for each in self.runs]),
            "precision": _ids(self.models, [each.plan.precision for each in self.runs]),
            "adapter": _ids(self.models, [each.plan.adapter for each in self.runs]),
        }

    @cached_property
    def own(self) -> dict[str, tuple[NDArray[np.int_], Floats]]:
        """A model's own effects except the smooth ones: ids of rows that share one, and the column it multiplies."""
        ones, ids = np.ones(len(self.runs)), self.ids
        found = {f"own {name}": (ids[name], ones) for name in LEVELS}
        found |= {f"own {name}": (ids["model"], share) for name, share in self.parts.items()}
        found |= {f"own {name} of each": (np.arange(len(ones)), self.parts[name]) for name in UNSTEADY}
        for name, column in zip(FEATURES, self.features.T, strict=True):
            found[f"own {name} slope"] = (ids["model"], column)
        return found

    def own_parts(self, a: NDArray[np.int_], b: NDArray[np.int_]) -> dict[str, Floats]:
        """Covariances between rows a and b of each of a model's own effects, at variance 1."""
        found = {
            name: (ids[a][:, None] == ids[b][None, :]) * (column[a][:, None] * column[b][None, :])
            for name, (ids, column) in self.own.items()
        }
        same = self.ids["model"][a][:, None] == self.ids["model"][b][None, :]
        x, z = self.features[a], self.features[b]
        apart = (x**2).sum(axis=1)[:, None] + (z**2).sum(axis=1)[None, :] - 2 * x @ z.T
        alike = self.ids["kernels"][a][:, None] == self.ids["kernels"][b][None, :]
        for name, length in SMOOTH.items():
            found[f"own {name}"] = same * alike * np.exp(-0.5 * np.maximum(apart, 0) / length**2)
        return found

    def own_covariance(self, variances: Mapping[str, float], a: NDArray[np.int_], b: NDArray[np.int_]) -> Floats:
        """Covariance between rows a and b of all of a model's own effects."""
        return np.asarray(sum(variances[name] * part for name, part in self.own_parts(a, b).items()))

    def own_drawn(self, variances: Mapping[str, float], count: int, rng: np.random.Generator) -> Floats:
        """Prior samples of the sum of a model's own effects."""
        total = np.zeros((count, len(self.runs)))
        for name, (ids, column) in self.own.items():
            effects = np.sqrt(variances[name]) * rng.standard_normal((count, int(ids.max(initial=-1)) + 1))
            total += effects[:, ids] * column
        for name, length in SMOOTH.items():
            total += np.sqrt(variances[f"own {name}"]) * self._smooth_drawn(length, count, rng)
        return total

    def _smooth_drawn(self, length: float, count: int, rng: np.random.Generator, waves: int = 128) -> Floats:
        """Samples of smooth functions by random Fourier features (Rahimi and Recht 2007), independent by model and
        kernels."""
        found = np.zeros((count, len(self.runs)))
        for each in np.unique(self.ids["kernels"]):
            at = np.flatnonzero(self.ids["kernels"] == each)
            turns = rng.standard_normal((self.features.shape[1], waves)) / length
            waved = np.cos(self.features[at] @ turns + rng.uniform(0, 2 * np.pi, waves))
            found[:, at] = np.sqrt(2 / waves) * rng.standard_normal((count, waves)) @ waved.T
        return found


def shared_columns(rows: Rows) -> tuple[dict[str, Floats], dict[str, str]]:
    """The column of each shared effect by name, and its kind; effects of a kind share one variance."""
    columns: dict[str, Floats] = {}
    kinds: dict[str, str] = {}
    for name, share in zip(TERMS, rows.shares.T, strict=True):
        columns[f"term {name}"], kinds[f"term {name}"] = share * SURE.get(name, UNSURE), "terms"
    for name, feature in zip(FEATURES, rows.features.T, strict=True):
        columns[f"slope {name}"], kinds[f"slope {name}"] = feature, "slopes"
    for kind, name, member in _memberships(rows.runs):
        columns[name], kinds[name] = member, kind
        for part, share in rows.parts.items():
            columns[f"{name} {part}"], kinds[f"{name} {part}"] = member * share, f"{kind} {part}"
    return columns, kinds


def of_coefficients(kind: str) -> bool:
    """Whether an effect of this kind changes coefficients of the law, rather than adding to its log."""
    return kind == "terms" or kind.split()[-1] in PARTS


def coefficients_of(runs: Sequence[RunSpec], coefficients: Floats, effects: Mapping[str, float]) -> Floats:
    """The law's coefficients for each run: the common ones times its shared effects on parts of the law.

    The law is linearized about these. If a GPU's memory term counts half as much again, for example, a run on it waits
    less for the host.
    """
    logs = np.tile(np.log(coefficients), (len(runs), 1))
    for _, name, member in _memberships(runs):
        for part, terms in _TERMS_OF.items():
            logs[:, terms] += (effects.get(f"{name} {part}", 0.0) * member)[:, None]
    return np.asarray(np.exp(logs))


def _memberships(runs: Sequence[RunSpec]) -> list[tuple[str, str, Floats]]:
    """Kind, name and indicator column of each group of runs: kernel word, GPU, precision, adapter, form of the code."""
    found: dict[tuple[str, str], Floats] = {}
    for i, spec in enumerate(runs):
        of = [("kernels", word) for word in kernel_words(spec)]
        of += [("gpu", spec.gpu.name), ("precision", spec.plan.precision), ("adapter", spec.plan.adapter)]
        of += [("form", form_of(spec))]
        for kind, name in of:
            found.setdefault((kind, f"{kind} {name}"), np.zeros(len(runs)))[i] = 1.0
    return [(kind, name, column) for (kind, name), column in found.items()]


def _features(spec: RunSpec) -> tuple[float, ...]:
    plan, sizes = spec.plan, spec.architecture
    kept = {"none": 0.0, "selective": 0.35, "full": 1.0}
    return (
        float(np.log(plan.micro_batch * spec.sequence / plan.context)),
        float(np.log(spec.sequence)),
        float(np.log((sizes.hidden + feed_forward_width(sizes) / 4) / 2 / plan.tensor)),
        float(np.log(plan.tensor)),
        float(np.log(plan.pipeline)),
        float(np.log(spec.data_parallel)),
        kept[plan.checkpointing],
    )


def _ids(*columns: Sequence[Hashable]) -> NDArray[np.int_]:
    known: dict[Hashable, int] = {}
    return np.array([known.setdefault(key, len(known)) for key in zip(*columns, strict=True)], dtype=int)
