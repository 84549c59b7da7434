"""A grey-box model of training speed: a physical law with unknown parameters plus a Gaussian process residual.

    log s(m, n) = c - log tau(m, n) - wall(m, n) + residual(m, n)

    tau = (1/(n g) + beta) / p^alpha                         computation, and a part that does not scale
        + gamma [ (n-1)/(n w) + (g-1)/(g w kappa) ]          ring all-reduce between nodes, and inside a node
        + eps (n-1)/w + delta log2(n g) + d                  parameter server, stragglers, constant

Symbols   m, n    instance type, nodes                g       devices in a node
          p       published rate of a device, in fp32 or on tensor cores: each sample of the law uses one of them
          w       network of a node; p and w are divided by their geometric means
          K       number of prior samples of the law's parameters
          wall    slow-down below M1 GB of total memory (running out of memory: `memory_need.py`)
          residual  a Gaussian process: a level for accelerators; type levels correlated by specification and family;
                  a common curve and one for each type over log n; and independent noise. Each sample draws its scale
          X       measured rows of the space, y their log rates, e their standard errors

Samples of the law are weighted by the likelihood of the measurements with the residual integrated out; failures are
evidence about memory. A posterior sample of speed is a law drawn by weight, plus a residual conditioned on the
measurements (Matheron's rule). See docs/methods/net-value.md.
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
"""Most values, surfaces x configurations: large spaces get fewer surfaces, so that a choice stays fast."""
FEWEST_SURFACES = 80
SCALES = (0.5, 1.0, 2.0)
"""Possible scales of the residual, as factors on the spreads below; their weights are learned from the measurements."""
LEVEL_SPREAD = 1.5
"""Prior standard deviation of the overall level: a factor of four or five either way."""
ACCELERATOR_SPREAD = 0.8
TYPE_SPREAD = 0.35
COMMON_CURVE_SPREAD = 0.15
OWN_CURVE_SPREAD = 0.15
ALONE_SPREAD = 0.08
CURVE_LENGTH = 1.0
"""Length scale of the curves over the natural log of nodes."""
RIGHT_ABOUT_MEMORY = (0.99, 0.95, 0.8)
"""Possible probabilities that memory explains an outcome (learned, too): jobs also fail for other reasons."""
TENSOR = 0.5
"""Probability that the job computes on tensor cores: by fp32 alone an L40S would be faster than an H100."""
SURE_OUT_OF_MEMORY = 0.99
"""Probability that a job which reported 'out of memory' really needs more than there was."""


@dataclass(frozen=True)
class Laws:
    """Samples of the law's parameters, (K, 1) each, and the specifications of a space, (N,) each."""

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
    """Depth of the slow-down below M1, in logs."""
    right: Floats
    """Probability that memory explains an outcome: (K,)."""
    scale: NDArray[np.intp]
    memory: MemoryNeed
    tensor: Mask
    """Whether the job computes on tensor cores."""
    specifications: tuple[Floats, Floats, Floats, Floats, Floats, Floats]

    def log_speed(self, draws: Rows, at: Rows) -> Floats:
        """log s(m, n) up to its level, by sample (rows) and configuration (columns)."""
        n, g, log_p, log_p_tensor, w, memory = (column[at] for column in self.specifications)
        rate = np.where(self.tensor[draws], log_p_tensor, log_p)
        tau = (
            (1 / (n * g) + self.beta[draws]) * np.exp(-self.alpha[draws] * rate)
            + self.gamma[draws] * ((n - 1) / (n * w) + (g - 1) / (g * w) / self.kappa[draws])
            + self.eps[draws] * ((n - 1) / w)
            + self.delta[draws] * np.log2(n * g)
            + self.d[draws]
        )
        # A real wall is a slope: half of the depth at M1, nearly all of it at half of M1.
        wall = self.depth[draws] / (1 + np.exp(4 * (np.log(n * memory) - self.slow[draws])))
        return np.asarray(-np.log(tau) - wall)


@lru_cache(maxsize=8)
def draw_laws(space: Space, seed: int, hints: Hints = NO_HINTS, draws: int = DRAWS) -> Laws:
    """Prior samples of the law's parameters."""
    rng = np.random.default_rng([seed, draws])

    def maybe(none: float, low: float, high: float) -> Floats:
        """Log-uniform between powers of ten, with a spike at zero."""
        return np.where(rng.random((draws, 1)) < none, 0.0, 10 ** rng.uniform(low, high, (draws, 1)))

    specifications = _specifications(space)
    total = np.log(specifications[0] * specifications[-1])
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
        specifications=specifications,
    )


@dataclass(frozen=True)
class Belief:
    """Posterior samples: log speed, (SURFACES, N); where the job fits, (SURFACES, N); sure to lack memory, (N,)."""

    log_speed: Floats
    fits: Mask
    ruled_out: Mask


@dataclass(frozen=True)
class Evidence:
    """Observations: log rates y with errors at rows `ran`; rows that ran out of memory; rows that failed otherwise."""

    ran: NDArray[np.intp]
    y: Floats
    error: Floats
    out_of_memory: NDArray[np.intp]
    failed: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.ran) + len(self.out_of_memory) + len(self.failed)


def believe(space: Space, laws: Laws, level: Floats, seen: Evidence, seed: int, surfaces: int | None = None) -> Belief:
    """The posterior given the observations. `level`: prior mean of c for each sample of the law, (K,)."""
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
    """Whether the job runs, by sample and configuration: if its memory need fits, with random exceptions.

    If launches have run out of memory and none failed for an unknown reason, a configuration with too little memory
    always fails. One with enough may still fail for another reason.
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
    """Weight of each sample of the law: likelihood of the observations with the residual integrated out."""
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
    """The Gaussian process of the residual, in parts that are cheap to sample over a grid.

    `types`, `curve`: square roots of the covariances of the types' levels, (types, types), and of the curves over the
    distinct node counts, (counts, waves), reduced to the eigenvectors that matter.
    """

    types: Floats
    curve: Floats
    types_covariance: Floats
    curve_covariance: Floats
    type_of: NDArray[np.intp]
    count_of: NDArray[np.intp]

    def covariance(self, a: NDArray[np.intp], b: NDArray[np.intp], scale: float) -> Floats:
        """Covariance between configurations a and b, without the independent noise."""
        types = self.types_covariance[np.ix_(self.type_of[a], self.type_of[b])]
        curve = self.curve_covariance[np.ix_(self.count_of[a], self.count_of[b])]
        same = self.type_of[a][:, None] == self.type_of[b][None, :]
        shape = COMMON_CURVE_SPREAD**2 * curve + OWN_CURVE_SPREAD**2 * curve * same
        return np.asarray(LEVEL_SPREAD**2 + scale**2 * (types + shape))

    def _factor(self, at: NDArray[np.intp], error: Floats, scale: float) -> Floats:
        noise = error**2 + (scale * ALONE_SPREAD) ** 2
        return np.asarray(np.linalg.cholesky(self.covariance(at, at, scale) + np.diag(noise)), dtype=np.float64)

    def log_likelihood(self, seen: Evidence, residual: Floats, scale: float) -> Floats:
        """Log likelihood of each row of residuals under the process."""
        if not seen.ran.size:
            return np.zeros(len(residual))
        factor = self._factor(seen.ran, seen.error, scale)
        white = linalg.solve_triangular(factor, residual.T, lower=True)
        return np.asarray(-0.5 * (white**2).sum(axis=0) - np.log(np.diag(factor)).sum())

    def surfaces(self, rng: np.random.Generator, seen: Evidence, laws: Floats, scale: float) -> Floats:
        """Laws plus a residual each, conditioned on y: prior samples moved to agree with the measurements."""
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
    specification = np.log(published)
    apart = ((specification[:, None, :] - specification[None, :, :]) ** 2).sum(axis=2)
    alike = np.exp(-0.5 * apart) * (flag[:, None] == flag[None, :])
    # The family of a type: the chip, with whatever memory, or the first part of its name.
    family = np.array([_chip(offer.accelerator) or offer.instance_type.partition(".")[0] for offer in offers])
    same_family = family[:, None] == family[None, :]
    types = TYPE_SPREAD**2 * (0.4 * alike + 0.3 * same_family + 0.3 * np.eye(len(offers)))
    types = types + ACCELERATOR_SPREAD**2 * flag[:, None] * flag[None, :]
    return _Residuals(_root(types), _root(curve, 1e-3), types, curve, space.offer_index, count_of)


def _chip(accelerator: str) -> str:
    """A name that GPUs share if they differ only in memory: the published bf16 rate, if the catalog knows it."""
    gpu = known_gpu(accelerator)
    return accelerator if gpu is None else f"{gpu.tflops_bf16:g} TFLOP/s"


def _root(covariance: Floats, negligible: float = 1e-9) -> Floats:
    """A square root of a covariance, without directions of negligible variance."""
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
    """Systematic resampling: each sample occurs in proportion to its weight, to within one."""
    edges = np.cumsum(weights) / weights.sum()
    return np.searchsorted(edges, (np.arange(size) + 0.5) / size).clip(max=len(weights) - 1)
