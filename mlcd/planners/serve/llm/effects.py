"""How deployments differ from the roofline model: random effects in the log of TPOT and of TTFT.

    log y = log roofline + shared effects + effects of this model + e        each effect ~ N(0, v), e ~ t4(0, noise)

Shared effects belong to an engine, to an engine with a GPU and a precision, to a kind of parallelism, and to the
roofline terms; they are learned from other models. A new model has effects of its own: a level; one for each engine and
each engine with GPU and precision; slopes over concurrency and GPUs; and for each deployment a level and two smooth
curves over concurrency, one slow (drift), one fast (bend). These curves have equal variance at every load; a slope,
which is largest far from its centre, would explain away a test there. Knobs that the roofline model does not include
have an effect for each of their values.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mlcd.core.configuration import Floats
from mlcd.planners.serve.llm.deployment import Deployment
from mlcd.planners.serve.llm.residuals import Residuals
from mlcd.planners.serve.llm.roofline import GROUPS, TPOT_TERMS, LoadPoint

MIDDLE_LOG_REQUESTS, MIDDLE_LOG_GPUS = 3.0, 1.0
"""Centres of the slopes: about 20 concurrent requests in a worker, and about 3 GPUs."""
CURVES = {"drift": 3.0, "bend": 1.0}
"""Correlation length of each curve, in the log of the concurrency."""
NEW_KNOB_SD, CPU_KNOB_SD = 0.2, 0.5
"""Standard deviation of the effect of a knob that the roofline model does not include; on a CPU, without any data."""
MODELLED_KNOBS, MODELLED_KNOB_SD = ("sequences", "kv_cache_gb"), 0.05
"""Knobs that the roofline model includes (admission, memory), and the standard deviation of their remaining effect."""
OWN = (
    "model", "engine", "gpu", "precision", "stack", "split", "workload", "requests", "gpus", "deployment", *CURVES,
)  # fmt: skip
"""The kinds of effects that each model has of its own. A stack is an engine on a GPU in a precision."""
SHARED = ("all", "engines", "stacks", "parallelism", "terms")
"""The kinds of effects that all models share."""


@dataclass(frozen=True)
class Group:
    """Rows with the same id share one effect, multiplied by a feature of the row (None: 1, for a level)."""

    ids: NDArray[np.int_]
    feature: Floats | None = None

    def covariance(self, rows: NDArray[np.int_], columns: NDArray[np.int_]) -> Floats:
        """Covariance between rows and columns of an effect of variance 1."""
        same: Floats = (self.ids[rows][:, None] == self.ids[columns][None, :]).astype(float)
        if self.feature is not None:
            same *= self.feature[rows][:, None] * self.feature[columns][None, :]
        return same

    def drawn(self, count: int, rng: np.random.Generator) -> Floats:
        """Samples of an effect of variance 1 at every row; count x rows."""
        effects = rng.standard_normal((count, int(self.ids.max(initial=-1)) + 1))[:, self.ids]
        return effects if self.feature is None else effects * self.feature


@dataclass(frozen=True)
class Rows:
    """Load points grouped by what their effects depend on. `models`: the name of each one's model."""

    points: Sequence[LoadPoint]
    models: Sequence[str]

    @cached_property
    def log_requests(self) -> Floats:
        """Log of the concurrent requests in a worker, centred."""
        return np.log([point.per_worker for point in self.points]) - MIDDLE_LOG_REQUESTS

    @cached_property
    def own(self) -> Mapping[str, Group]:
        """The effects of a model, except its curves."""
        at, gpus = [point.deployment for point in self.points], [point.gpu.name for point in self.points]
        workload = [(point.prompts.input_tokens, point.prompts.output_tokens) for point in self.points]
        log_gpus = np.log([float(each.worker_gpus) for each in at]) - MIDDLE_LOG_GPUS
        stacks = [(*stack_of(point), point.deployment.mode) for point in self.points]
        return {
            "model": Group(self._ids(self.models)),
            "engine": Group(self._ids(self.models, [each.engine for each in at])),
            "gpu": Group(self._ids(self.models, gpus)),
            "precision": Group(self._ids(self.models, [each.precision for each in at])),
            "stack": Group(self._ids(self.models, stacks)),
            "split": Group(self._ids(self.models, [(each.engine, *_split(each)) for each in at])),
            "workload": Group(self._ids(self.models, workload)),
            "requests": Group(self._ids(self.models), self.log_requests),
            "gpus": Group(self._ids(self.models), log_gpus),
            "deployment": Group(self.deployments),
        }

    @cached_property
    def deployments(self) -> NDArray[np.int_]:
        """The id of each row's deployment of a model."""
        return self._ids(self.models, [_without_load(point) for point in self.points])

    @cached_property
    def curves(self) -> NDArray[np.int_]:
        """The id of each row's curve: rows of one deployment with equal prompts share it."""
        workload = [(point.prompts.input_tokens, point.prompts.output_tokens) for point in self.points]
        return self._ids(self.deployments.tolist(), workload)

    @cached_property
    def residuals(self) -> Residuals:
        """The residuals that no effect explains."""
        return Residuals(self.curves, self.log_requests)

    @cached_property
    def knobs(self) -> tuple[Group, ...]:
        """An effect for each value of each knob that is not in the roofline terms."""
        settings = [_other_knobs(point.deployment) for point in self.points]
        names = dict.fromkeys(name for each in settings for name in each)
        columns = {name: [each.get(name) for each in settings] for name in names}
        new_sd = np.array([NEW_KNOB_SD if point.deployment.gpu else CPU_KNOB_SD for point in self.points])
        modelled_sd = np.full(len(self.points), MODELLED_KNOB_SD)
        return tuple(
            Group(self._ids(self.models, column), modelled_sd if name in MODELLED_KNOBS else new_sd)
            for name, column in columns.items()
            if len(set(column)) > 1
        )

    def own_covariance(self, variances: Mapping[str, float], a: NDArray[np.int_], b: NDArray[np.int_]) -> Floats:
        """Covariance of all effects of a model's own, between rows a and b."""
        total = np.zeros((len(a), len(b)))
        for name, group in self.own.items():
            total += variances[name] * group.covariance(a, b)
        for group in self.knobs:
            total += group.covariance(a, b)
        for name in CURVES:
            total += variances[name] * self.curve_covariance(name, a, b)
        return total

    def curve_covariance(self, name: str, a: NDArray[np.int_], b: NDArray[np.int_]) -> Floats:
        """Covariance between rows a and b of a smooth function of concurrency, independent for each deployment."""
        apart = (self.log_requests[a][:, None] - self.log_requests[b][None, :]) / CURVES[name]
        return np.asarray((self.curves[a][:, None] == self.curves[b][None, :]) * np.exp(-0.5 * apart**2))

    def own_drawn(self, variances: Mapping[str, float], count: int, rng: np.random.Generator) -> Floats:
        """Samples of all effects of a model's own, before any trial."""
        total = np.zeros((count, len(self.points)))
        for name, group in self.own.items():
            total += np.sqrt(variances[name]) * group.drawn(count, rng)
        for group in self.knobs:
            total += group.drawn(count, rng)
        loads, where = np.unique(self.log_requests, return_inverse=True)
        for name, length in CURVES.items():
            alike = np.exp(-0.5 * ((loads[:, None] - loads[None, :]) / length) ** 2)
            root = np.linalg.cholesky(alike + 1e-6 * np.eye(len(loads)))
            curves = rng.standard_normal((count, int(self.curves.max(initial=-1)) + 1, len(loads))) @ root.T
            total += np.sqrt(variances[name]) * curves[:, self.curves, where]
        return total

    @staticmethod
    def _ids(*columns: Sequence[Hashable]) -> NDArray[np.int_]:
        known: dict[Hashable, int] = {}
        return np.array([known.setdefault(key, len(known)) for key in zip(*columns, strict=True)], dtype=int)


def shared_names(point: LoadPoint) -> dict[str, str]:
    """The shared effects of a load point: kind -> name, such as 'engines' -> 'engine vllm'."""
    at = point.deployment
    return {
        "all": "all",
        "engines": f"engine {at.engine}",
        "stacks": "stack " + " ".join(stack_of(point)),
        "parallelism": f"parallelism {at.engine} " + " ".join(map(str, _split(at))),
    }


def term_shares(tpot_terms: Floats, coefficients: Floats) -> dict[str, Floats]:
    """The share of each group of terms in the modelled TPOT, by which an error of its coefficients changes log TPOT."""
    parts = tpot_terms * coefficients
    parts /= parts.sum(axis=1, keepdims=True)
    names = list(TPOT_TERMS)
    return {f"terms {group}": parts[:, [names.index(each) for each in of]].sum(axis=1) for group, of in GROUPS.items()}


def _split(at: Deployment) -> tuple[int, int, int, str]:
    """The parallelism of a worker."""
    return at.tp, at.dp, at.ep, at.mode


def stack_of(point: LoadPoint) -> tuple[str, str, str]:
    """Engine, GPU and precision."""
    return point.deployment.engine, point.gpu.name, point.deployment.precision


def _without_load(point: LoadPoint) -> tuple[Hashable, ...]:
    at = point.deployment
    workers = (at.decode_workers, at.prefill_workers, at.prefill_tp, at.prefill_dp, at.prefill_ep)
    return (*stack_of(point), at.mode, at.tp, at.pp, at.dp, at.ep, *workers, *_other_knobs(at).items())


def _other_knobs(at: Deployment) -> dict[str, Hashable]:
    known: dict[str, Hashable] = {"threads": at.threads, "pp": at.pp, "kv_cache": at.kv_cache, "eager": at.eager}
    known |= {"batched_tokens": at.batched_tokens, "sequences": at.sequences, "kv_cache_gb": at.kv_cache_gb}
    return {**known, **dict(at.rest)}
