"""A grey-box belief about speed: a physical law with unknown parameters, and what the law misses.

    log s(m, n) = c - log tau(m, n) - wall(m, n) + residual(m, n)

    tau = (1/(n g) + beta) / p^alpha                         computing, and the part that does not shrink
        + gamma [ (n-1)/(n w) + (g-1)/(g w kappa) ]          ring all-reduce between nodes, and inside a node
        + eps (n-1)/w + delta log2(n g) + d                  parameter server, stragglers, constant

Symbols   m, n    instance type, nodes                g       devices in a node
          p       published rate of a device, in fp32 or of its tensor cores: a draw says which
          w       network of a node; p and w over their geometric means
          k       a draw of all law parameters        K       their number
          wall    job slows by a factor below M1 GB in all; what runs out of memory is said by `physics.py`
          residual  a Gaussian process: a level for accelerators, types alike by specification and family, a common
                  and a type's own curve over log n, and what belongs to one configuration alone; its scale is drawn
          X       what was measured (rows of the space), y its log rate, e the standard error

The law's draws are weighted by how well they explain the measurements with the residual integrated out;
failures count as evidence on memory. A posterior surface is a law drawn by weight plus a residual conditioned on
the measurements (Matheron's rule). See docs/methods/net-value.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from mlcd.catalog.gpus import known_gpu
from mlcd.core.configuration import Floats, Mask, Space
from mlcd.core.job import Hints
from mlcd.planners.modeling.memory_need import NO_HINTS, MemoryNeed, Rows, cannot_fit, draw_memory_need
from mlcd.planners.modeling.physics import on_tensor_cores

DRAWS = 2_000
SURFACES = 256
MOST_VALUES = 250_000
"""Of surfaces x configurations: a large space gets fewer surfaces, which is what keeps a choice fast."""
FEWEST_SURFACES = 80
SCALES = (0.5, 1.0, 2.0)
"""How far the truth may be from the law, relative to the spreads below: learnt from the measurements."""
LEVEL_SPREAD = 1.5
"""Of the overall level, before anything is measured: a factor of four or five either way."""
ACCELERATOR_SPREAD = 0.8
TYPE_SPREAD = 0.35
COMMON_CURVE_SPREAD = 0.15
OWN_CURVE_SPREAD = 0.15
ALONE_SPREAD = 0.08
CURVE_LENGTH = 1.0
"""Of the curves over the natural log of nodes."""
RIGHT_ABOUT_MEMORY = (0.99, 0.95, 0.8)
"""How sure an outcome is to follow the right draw of the memory need: learnt, too. Jobs fail for other reasons."""
TENSOR = 0.5
"""How likely tensor cores do the computing: by fp32 alone an L40S would be faster than an H100."""
SURE_OUT_OF_MEMORY = 0.99
"""How sure a job that said 'out of memory' needs more memory than there was."""


@dataclass(frozen=True)
class Laws:
    """The law's draws, (K, 1) each, and the facts of a space that they speak of, (N,) each."""

    alpha: Floats
    beta: Floats
    gamma: Floats
    kappa: Floats
    eps: Floats
    delta: Floats
    d: Floats
    slow: Floats
    """log M1."""
    depth: Floats
    """Of the slow-down below M1, in logs."""
    right: Floats
    """How sure an outcome is to follow the memory need: (K,)."""
    scale: NDArray[np.intp]
    memory: MemoryNeed
    tensor: Mask
    """Whether tensor cores do the computing."""
    facts: tuple[Floats, Floats, Floats, Floats, Floats, Floats]

    def log_speed(self, draws: Rows, at: Rows) -> Floats:
        """log s(m, n) up to its level: a row for each draw, a column for each configuration."""
        n, g, log_p, log_p_tensor, w, memory = (fact[at] for fact in self.facts)
        rate = np.where(self.tensor[draws], log_p_tensor, log_p)
        tau = (
            (1 / (n * g) + self.beta[draws]) * np.exp(-self.alpha[draws] * rate)
            + self.gamma[draws] * ((n - 1) / (n * w) + (g - 1) / (g * w) / self.kappa[draws])
            + self.eps[draws] * ((n - 1) / w)
            + self.delta[draws] * np.log2(n * g)
            + self.d[draws]
        )
        # A wall is a slope in life: half of the depth at its place, nearly all of it at half the memory.
        wall = self.depth[draws] / (1 + np.exp(4 * (np.log(n * memory) - self.slow[draws])))
        return np.asarray(-np.log(tau) - wall)


@lru_cache(maxsize=8)
def draw_laws(space: Space, seed: int, hints: Hints = NO_HINTS, draws: int = DRAWS) -> Laws:
    """The prior: draws of the law's parameters."""
    rng = np.random.default_rng([seed, draws])

    def maybe(none: float, low: float, high: float) -> Floats:
        """Log-uniform between powers of ten, with a spike at zero."""
        return np.where(rng.random((draws, 1)) < none, 0.0, 10 ** rng.uniform(low, high, (draws, 1)))

    facts = _specifications(space)
    total = np.log(facts[0] * facts[-1])
    low, high = total.min() - np.log(2), total.max()
    memory = draw_memory_need(space, hints, rng, draws)
    above, alone = rng.uniform(0.0, 1.5, (draws, 1)), rng.uniform(low, high, (draws, 1))
    walled = memory.batch > 0
    return Laws(
        alpha=rng.uniform(0.4, 1.1, (draws, 1)),
        beta=maybe(0.3, -2.5, 0.0),
        gamma=maybe(0.15, -2.5, 0.7),
        kappa=10 ** rng.uniform(0.0, 2.0, (draws, 1)),
        eps=maybe(0.6, -3.0, 0.0),
        delta=maybe(0.5, -3.0, -0.3),
        d=maybe(0.4, -2.5, 0.3),
        slow=np.where(walled, np.log(np.where(walled, memory.batch, 1.0)) + above, alone),
        depth=np.where(rng.random((draws, 1)) < 0.35, rng.uniform(0.3, 2.0, (draws, 1)), 0.0),
        scale=rng.integers(0, len(SCALES), draws),
        right=rng.choice(RIGHT_ABOUT_MEMORY, draws),
        memory=memory,
        tensor=rng.random((draws, 1)) < TENSOR,
        facts=facts,
    )


@dataclass(frozen=True)
class Belief:
    """Equally likely surfaces of log speed, (SURFACES, N); where the job fits; what is sure to lack memory, (N,)."""

    log_speed: Floats
    fits: Mask
    ruled_out: Mask


@dataclass(frozen=True)
class Evidence:
    """What was seen: log rates y with their errors at rows `ran`, rows that ran out of memory, and rows that failed."""

    ran: NDArray[np.intp]
    y: Floats
    error: Floats
    out_of_memory: NDArray[np.intp]
    failed: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.ran) + len(self.out_of_memory) + len(self.failed)


def believe(space: Space, laws: Laws, level: Floats, seen: Evidence, seed: int, surfaces: int | None = None) -> Belief:
    """The posterior given what was seen. `level`: the prior mean of c for each draw, (K,)."""
    residuals = _residuals(space)
    if surfaces is None:
        surfaces = min(SURFACES, max(FEWEST_SURFACES, MOST_VALUES // len(space)))
    picked = _resample(weigh(space, laws, level, seen), surfaces)
    rng = np.random.default_rng([seed, len(seen.ran), len(seen) - len(seen.ran)])
    every = np.arange(len(space))
    log_speed = np.empty((surfaces, len(space)))
    for i, scale in enumerate(SCALES):
        rows = np.flatnonzero(laws.scale[picked] == i)
        if rows.size:
            law = laws.log_speed(picked[rows], every) + level[picked[rows], None]
            log_speed[rows] = residuals.surfaces(rng, seen, law, scale)
    ruled_out = cannot_fit(space, seen.ran, seen.out_of_memory)
    return Belief(log_speed, _fits(laws, picked, seen, seed) & ~ruled_out, ruled_out)


def _fits(laws: Laws, picked: Rows, seen: Evidence, seed: int) -> Mask:
    """Whether the job runs: as its memory need says, but for some of what nobody has tried.

    Once jobs have run out of memory, and none has failed without saying why, what has not the memory is sure to fail.
    What has it may fail all the same.
    """
    every = np.arange(len(laws.memory.share))
    rng = np.random.default_rng([seed, len(seen.ran), len(seen) - len(seen.ran), 1])
    exception = rng.random((len(picked), len(every)), dtype=np.float32) >= laws.right[picked, None]
    has_memory = ~laws.memory.too_small(picked, every)
    sure = seen.out_of_memory.size and not seen.failed.size
    fits: Mask = has_memory & ~exception if sure else has_memory ^ exception
    fits[:, seen.failed], fits[:, seen.out_of_memory], fits[:, seen.ran] = False, False, True
    return fits


def weigh(space: Space, laws: Laws, level: Floats, seen: Evidence) -> Floats:
    """How likely each draw is by what was seen, the residual integrated out; up to a factor."""
    residuals, every = _residuals(space), np.arange(len(level))
    weights = np.zeros(len(level))
    residual = seen.y - laws.log_speed(every, seen.ran) - level[:, None]
    for i, scale in enumerate(SCALES):
        rows = laws.scale == i
        weights[rows] = residuals.log_likelihood(seen, residual[rows], scale)
    too_small = laws.memory.too_small
    wrong = too_small(every, seen.ran).sum(axis=1) + (~too_small(every, seen.failed)).sum(axis=1)
    unsure = len(seen.ran) + len(seen.failed)
    weights += wrong * np.log(1 - laws.right) + (unsure - wrong) * np.log(laws.right)
    weights += (~too_small(every, seen.out_of_memory)).sum(axis=1) * np.log(1 - SURE_OUT_OF_MEMORY)
    return np.asarray(np.exp(weights - weights.max()))


@dataclass(frozen=True)
class _Residuals:
    """The Gaussian process of what the law misses, in parts that are cheap to sample over a grid.

    Roots of covariances. `types`: of the types' levels, (types, types). `curve`: over the distinct node counts, of the
    few waves that matter, (counts, waves).
    """

    types: Floats
    curve: Floats
    types_covariance: Floats
    curve_covariance: Floats
    type_of: NDArray[np.intp]
    count_of: NDArray[np.intp]

    def covariance(self, a: NDArray[np.intp], b: NDArray[np.intp], scale: float) -> Floats:
        """Between configurations a and b, without what belongs to one alone."""
        types = self.types_covariance[np.ix_(self.type_of[a], self.type_of[b])]
        curve = self.curve_covariance[np.ix_(self.count_of[a], self.count_of[b])]
        same = self.type_of[a][:, None] == self.type_of[b][None, :]
        shape = COMMON_CURVE_SPREAD**2 * curve + OWN_CURVE_SPREAD**2 * curve * same
        return np.asarray(LEVEL_SPREAD**2 + scale**2 * (types + shape))

    def _factor(self, at: NDArray[np.intp], error: Floats, scale: float) -> Floats:
        noise = error**2 + (scale * ALONE_SPREAD) ** 2
        return np.asarray(np.linalg.cholesky(self.covariance(at, at, scale) + np.diag(noise)), dtype=np.float64)

    def log_likelihood(self, seen: Evidence, residual: Floats, scale: float) -> Floats:
        """Of each row of residuals, the process integrated out."""
        if not seen.ran.size:
            return np.zeros(len(residual))
        factor = self._factor(seen.ran, seen.error, scale)
        white = linalg.solve_triangular(factor, residual.T, lower=True)
        return np.asarray(-0.5 * (white**2).sum(axis=0) - np.log(np.diag(factor)).sum())

    def surfaces(self, rng: np.random.Generator, seen: Evidence, laws: Floats, scale: float) -> Floats:
        """Laws with a residual each, conditioned on y: a prior sample, moved to where the measurements are."""
        rows, types, waves = len(laws), len(self.types), self.curve.shape[1]
        level = LEVEL_SPREAD * rng.standard_normal((rows, 1))
        per_type = rng.standard_normal((rows, types)) @ self.types.T
        common = COMMON_CURVE_SPREAD * rng.standard_normal((rows, 1, waves)) @ self.curve.T
        own = OWN_CURVE_SPREAD * rng.standard_normal((rows * types, waves)) @ self.curve.T  # one product, not one a row
        together = per_type[:, :, None] + common + own.reshape(rows, types, -1)
        alone = ALONE_SPREAD * rng.standard_normal(laws.shape, dtype=np.float32)
        prior = laws + level + scale * (together[:, self.type_of, self.count_of] + alone)
        at = seen.ran
        if not at.size:
            return prior
        factor = self._factor(at, seen.error, scale)
        noisy = prior[:, at] + seen.error * rng.standard_normal((rows, at.size))
        cross = self.covariance(np.arange(prior.shape[1]), at, scale)
        cross[at, np.arange(at.size)] += (scale * ALONE_SPREAD) ** 2
        return np.asarray(prior + linalg.cho_solve((factor, True), (seen.y - noisy).T).T @ cross.T)


@lru_cache(maxsize=8)
def _residuals(space: Space) -> _Residuals:
    counts, count_of = np.unique(space.nodes, return_inverse=True)
    gap = np.log(counts)[:, None] - np.log(counts)[None, :]
    curve = np.exp(-0.5 * (gap / CURVE_LENGTH) ** 2)
    offers = space.offers
    flag = np.array([float(offer.accelerators > 0) for offer in offers])
    published = [
        (o.tflops / o.workers, max(o.network_gbps, 0.01), max(o.memory_gb / max(o.vcpus, 1), 0.01)) for o in offers
    ]
    facts = np.log(published)
    apart = ((facts[:, None, :] - facts[None, :, :]) ** 2).sum(axis=2)
    alike = np.exp(-0.5 * apart) * (flag[:, None] == flag[None, :])
    # What a type shares with its siblings: the chip, with whatever memory, or the first part of its name.
    family = np.array([_chip(offer.accelerator) or offer.instance_type.partition(".")[0] for offer in offers])
    same_family = family[:, None] == family[None, :]
    types = TYPE_SPREAD**2 * (0.4 * alike + 0.3 * same_family + 0.3 * np.eye(len(offers)))
    types = types + ACCELERATOR_SPREAD**2 * flag[:, None] * flag[None, :]
    return _Residuals(_root(types), _root(curve, 1e-3), types, curve, space.offer_index, count_of)


def _chip(accelerator: str) -> str:
    """The same for GPUs that differ in memory alone: their published rate in bf16, if the catalog knows them."""
    gpu = known_gpu(accelerator)
    return accelerator if gpu is None else f"{gpu.tflops_bf16:g} TFLOP/s"


def _root(covariance: Floats, negligible: float = 1e-9) -> Floats:
    """A square root, without the directions in which next to nothing happens."""
    values, vectors = np.linalg.eigh(covariance)
    kept = values > negligible * values.max()
    return np.asarray(vectors[:, kept] * np.sqrt(values[kept]), dtype=np.float64)


def _specifications(space: Space) -> tuple[Floats, Floats, Floats, Floats, Floats, Floats]:
    """Nodes, devices, log of the device rate without and with tensor cores, network, and memory of a node."""
    offers = space.offers
    rates, tensor = (
        np.log([offer.tflops / offer.workers for offer in each.offers]) for each in (space, on_tensor_cores(space))
    )
    network = np.array([max(offer.network_gbps, 0.01) for offer in offers])
    memory = np.array([o.accelerators * o.accelerator_memory_gb or max(o.memory_gb, 0.1) for o in offers])
    devices = np.array([float(offer.workers) for offer in offers])
    index = space.offer_index
    return (
        space.nodes,
        devices[index],
        (rates - rates.mean())[index],
        (tensor - tensor.mean())[index],
        (network / np.exp(np.log(network).mean()))[index],
        memory[index],
    )


def _resample(weights: Floats, size: int) -> NDArray[np.intp]:
    """Systematic resampling: each draw as often as its weight says, to within one."""
    edges = np.cumsum(weights) / weights.sum()
    return np.searchsorted(edges, (np.arange(size) + 0.5) / size).clip(max=len(weights) - 1)
