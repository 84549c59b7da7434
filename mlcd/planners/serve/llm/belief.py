"""The belief about deployments of a language model: roofline model, effects learned from other models, and its trials.

A sample is a TPOT and a TTFT for each deployment at each concurrency. From these follow the rate

    tokens/s = concurrency x output tokens / (TTFT + (output tokens - 1) TPOT)

and all figures. A deployment counts by its best level that meets the caps. Samples are drawn from the prior and then
moved to agree with the trials (Matheron's rule; Wilson et al. 2020), so that no matrix grows with the space.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mlcd.catalog.gpus import Gpu, gpu_named
from mlcd.core.configuration import Configuration, Floats, Space
from mlcd.core.errors import UserError
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.planners.modeling.architecture import Architecture
from mlcd.planners.serve.beliefs.draws import Draws
from mlcd.planners.serve.known_models import ByIdentity, Knowledge
from mlcd.planners.serve.llm.deployment import Deployment, deployment, deployment_of
from mlcd.planners.serve.llm.effects import Rows
from mlcd.planners.serve.llm.learning import LoadTest, learn
from mlcd.planners.serve.llm.memory import chances_to_fit
from mlcd.planners.serve.llm.nouns import LanguageModel
from mlcd.planners.serve.llm.prior import (
    Prior,
    SharedEffects,
    TimePrior,
    shared_effects,
    shipped_prior,
    unlearned_prior,
)
from mlcd.planners.serve.llm.recording import load_tests
from mlcd.planners.serve.llm.residuals import JITTER
from mlcd.planners.serve.llm.roofline import LoadPoint, Terms, terms_of
from mlcd.planners.serve.nouns import Cap, Figure, Level, served_by, service_of

LONGEST_LOG_S = 5.0
"""Sampled times are limited to e^5 s."""
RATIOS = {
    Figure.TTFT_P95: (Figure.TTFT_P50, np.log(1.6), 0.4),
    Figure.TPOT_P95: (Figure.TPOT_P50, np.log(1.15), 0.15),
    Figure.ITL_P50: (Figure.TPOT_P50, 0.0, 0.15),
    Figure.ITL_P95: (Figure.TPOT_P50, np.log(1.5), 0.4),
    Figure.P95: (Figure.P50, np.log(1.2), 0.15),
    Figure.P99: (Figure.P50, np.log(1.4), 0.25),
}
"""For each figure: the figure that it is modelled from, the expected log of their ratio, and its standard deviation."""
RATIO_NOISE, RATIO_TRUST = 0.1, 4.0
"""Prior standard deviation of a ratio between loads of one search, and the number of loads that it counts for."""
CPU_BANDWIDTH_GB_S, CPU_TFLOPS, CPU_MEMORY_GB = 10.0, 0.1, 16.0
"""Rough numbers of one CPU core; trials correct the level."""


TYPICAL_ARCHITECTURE = Architecture(
    params_b=8.0, active_b=8.0, layers=32, hidden=4_096, heads=32, kv_heads=8, head_dim=128, vocab=128_256,
    dense_hidden=14_336, dense_layers=32, full_layers=32,
)  # fmt: skip
"""The sizes of Llama 3.1 8B, used for a model whose architecture is unknown."""


@dataclass(frozen=True)
class Times:
    """The prior of TPOT or TTFT at every load point: the log by the roofline model, and the shared effects.

    The roofline model of TTFT depends on TPOT: for samples of TPOT it has a row each.
    """

    roofline: Floats
    shared: SharedEffects
    prior: TimePrior


@dataclass(frozen=True)
class Table:
    """The load points of a space. `configuration`: the index of each one's configuration. `at`: the row of each
    (configuration, concurrency). `outside`: the share of load points on GPUs without measurements.
    """

    rows: Rows
    terms: Terms
    configuration: NDArray[np.int_]
    at: dict[tuple[int, int], int]
    tpot: Times
    ttft: Times
    outside: float

    def ttft_with(self, tpot_s: Floats) -> Times:
        """The prior of TTFT given samples of TPOT."""
        return replace(self.ttft, roofline=self.terms.log_ttft(self.ttft.prior.coefficients, tpot_s))

    @property
    def requests(self) -> Floats:
        """The concurrency of each load point."""
        return np.array([point.concurrency for point in self.rows.points], dtype=float)


def draw(knowledge: Knowledge, job: Job, space: Space, history: History, count: int, rng: np.random.Generator) -> Draws:
    """Samples of the best level of each configuration under the caps, given the seen models and the trials."""
    table = table_of(ByIdentity(knowledge, space), language_of(job))
    loads, levels = _measured(table, space, history)
    measured = [level.figures for level in levels]
    tpot = drawn_times(table, table.tpot, loads, [each[Figure.TPOT_P50] for each in measured], count, rng)
    ttft = drawn_times(table, table.ttft_with(tpot), loads, [each[Figure.TTFT_P50] for each in measured], count, rng)
    ttft = np.maximum(ttft, table.terms.admission_wait_s(tpot))
    ttft[:, loads] = [each[Figure.TTFT_P50] for each in measured]
    figures = _figures(table, tpot, ttft, levels, count, rng)
    rate = table.requests * table.terms.tokens_out / figures[Figure.P50]
    rate[:, loads] = [level.rate for level in levels]
    runs = _runs(knowledge, language_of(job), space, history, count, rng)
    return _best_levels(table, rate, figures, service_of(job).caps, runs, len(space))


def language_of(job: Job) -> LanguageModel:
    """The language model of a job; a typical architecture stands in for an unknown one."""
    language = service_of(job).language
    if language is None:
        raise UserError(f"{job.name} is no language model: engines serve nothing else")
    return replace(language, architecture=language.architecture or TYPICAL_ARCHITECTURE)


@lru_cache(maxsize=16)
def table_of(key: ByIdentity, language: LanguageModel) -> Table:
    """The load points of a space with their prior. `key`: the knowledge and the space."""
    knowledge, space = key.objects
    prior = prior_of(knowledge)
    points, configuration = [], []
    for i, each in enumerate(space.configurations):
        for point in load_points(knowledge, each, language):
            points.append(point)
            configuration.append(i)
    rows, terms = Rows(points, [""] * len(points)), terms_of(points)
    log_tpot = terms.log_tpot(prior.tpot.coefficients)
    log_ttft = terms.log_ttft(prior.ttft.coefficients, np.exp(log_tpot))
    at = {(i, point.concurrency): row for row, (i, point) in enumerate(zip(configuration, points, strict=True))}
    return Table(
        rows,
        terms,
        np.array(configuration),
        at,
        Times(log_tpot, shared_effects(prior.tpot, terms, rows, prior.systems), prior.tpot),
        Times(log_ttft, shared_effects(prior.ttft, terms, rows, prior.systems, np.exp(log_tpot)), prior.ttft),
        float(np.mean([point.gpu.name not in prior.systems for point in points])),
    )


def prior_of(knowledge: Knowledge) -> Prior:
    """The prior learned from a recording's models; the shipped one without a recording."""
    if knowledge.models:
        return learned_prior(ByIdentity(knowledge))
    return unlearned_prior() if knowledge.source else shipped_prior()


@lru_cache(maxsize=16)
def learned_prior(key: ByIdentity) -> Prior:
    """The prior learned from the models of a recording. `key`: its knowledge."""
    (knowledge,) = key.objects
    return learn(tests_of(knowledge))


def tests_of(knowledge: Knowledge) -> list[LoadTest]:
    """All load tests of the seen models."""
    tests = []
    for model in knowledge.models:
        facts = model.facts
        assert facts.architecture is not None, "a recording of engines has the architecture of its models"
        assert facts.prompts is not None, "and the lengths of their requests"
        for knobs, cell in load_tests(model):
            at = deployment(knobs)
            point = LoadPoint(facts.architecture, at, device_of(knowledge, at), facts.prompts, at.concurrency)
            tests.append(LoadTest(facts.name, point, cell.figures[Figure.TTFT_P50], cell.figures[Figure.TPOT_P50]))
    return tests


def load_points(knowledge: Knowledge, configuration: Configuration, language: LanguageModel) -> list[LoadPoint]:
    """A configuration at each concurrency that its trial measures."""
    at, sizes = deployment_of(configuration, language.engine.name), language.architecture
    assert sizes is not None, "language_of() fills it in"
    sweep = (at.concurrency,) if at.concurrency else at.sweep or language.sweep
    gpu = device_of(knowledge, at)
    return [LoadPoint(sizes, at, gpu, language.prompts, requests) for requests in sweep]


def device_of(knowledge: Knowledge, at: Deployment) -> Gpu:
    """The datasheet of a deployment's GPU; for a CPU, rough numbers by its cores."""
    if at.gpu:
        return gpu_named(at.gpu, knowledge.resources.get("gpu"))
    cores = max(1, at.threads)
    return Gpu("cpu", CPU_MEMORY_GB, CPU_BANDWIDTH_GB_S * cores**0.8, CPU_TFLOPS * cores)


def _measured(table: Table, space: Space, history: History) -> tuple[NDArray[np.int_], list[Level]]:
    """The load points that trials have measured, and their results."""
    loads, levels = [], []
    for measurement in history.good:
        i, served = space.index.get(measurement.configuration), served_by(measurement)
        if i is None:
            continue
        alone = Level(0, measurement.rate, measurement.rel_error, served.figures, served.high)
        for level in served.levels or (alone,):
            row = table.at.get((i, level.concurrency)) if served.levels else int(np.argmax(table.configuration == i))
            if row is not None and {Figure.TTFT_P50, Figure.TPOT_P50} <= set(level.figures):
                loads.append(row)
                levels.append(level)
    return np.array(loads, dtype=int), levels


def drawn_times(
    table: Table, times: Times, loads: NDArray[np.int_], measured: Sequence[float], count: int, rng: np.random.Generator
) -> Floats:
    """Samples of a time at every load point, in seconds; measured points keep their measured value."""
    prior, spread, rows = times.prior, times.shared.spread, table.rows
    logs, middle = np.log(measured), np.atleast_2d(times.roofline + times.shared.middle)
    every = np.arange(len(rows.points))
    samples = middle + rng.standard_normal((count, spread.shape[1])) @ spread.T
    samples += rows.own_drawn(prior.variances, count, rng)
    residual_variance = prior.noise / rows.residuals.trust_drawn(count, rng)
    if not len(loads):
        return _seconds(samples + np.sqrt(residual_variance) * rows.residuals.drawn(count, rng))
    across = spread @ spread[loads].T + rows.own_covariance(prior.variances, every, loads)
    errors = prior.noise / rows.residuals.of(loads).trust(logs - middle[0, loads], across[loads], prior.noise)
    for curve, error in zip(rows.curves[loads], errors, strict=True):
        residual_variance[:, rows.curves == curve] = error
    samples += np.sqrt(residual_variance) * rows.residuals.drawn(count, rng)
    across += errors * rows.residuals.covariance(every, loads)
    samples += (logs - samples[:, loads]) @ np.linalg.solve(across[loads] + JITTER * np.eye(len(loads)), across.T)
    samples[:, loads] = logs
    return _seconds(samples)


def _seconds(logs: Floats) -> Floats:
    return np.asarray(np.exp(np.minimum(logs, LONGEST_LOG_S)))


def _figures(
    table: Table, tpot: Floats, ttft: Floats, levels: Sequence[Level], count: int, rng: np.random.Generator
) -> dict[Figure, Floats]:
    """Every figure of each sample, from TPOT and TTFT and the ratios of quantiles to medians in the trials."""
    answer = ttft + (table.terms.tokens_out - 1) * tpot
    figures = {Figure.TTFT_P50: ttft, Figure.TPOT_P50: tpot, Figure.P50: answer}
    for figure, (of, expected, deviation) in RATIOS.items():
        known = [
            np.log(each.figures[figure] / each.figures[of]) for each in levels if {figure, of} <= set(each.figures)
        ]
        noise = _ratio_noise(known)
        precision = 1 / deviation**2 + len(known) / noise**2
        middle = (expected / deviation**2 + sum(known) / noise**2) / precision
        ratios = middle + rng.standard_normal((count, 1)) / np.sqrt(precision)
        ratios = ratios + noise * rng.standard_normal(tpot.shape)
        figures[figure] = figures[of] * np.exp(ratios)
    return figures


def _ratio_noise(known: Sequence[float]) -> float:
    """Standard deviation of a ratio between loads: the prior value, pooled with the variance in the trials."""
    around = float(np.var(known)) * len(known) if known else 0.0
    return float(np.sqrt((RATIO_TRUST * RATIO_NOISE**2 + around) / (RATIO_TRUST + len(known))))


def _best_levels(
    table: Table, rate: Floats, figures: dict[Figure, Floats], caps: Sequence[Cap], runs: NDArray[np.bool_], size: int
) -> Draws:
    """For each configuration the level with the largest rate under the caps; the smallest load if none meets them."""
    kept = np.ones(rate.shape, bool)
    for cap in caps:
        kept &= figures[cap.figure] <= cap.at_most_s
    smallest = np.zeros(rate.shape[1])
    first = np.unique(table.configuration, return_index=True)[1]
    smallest[first] = 1e-9
    score = np.where(kept, rate, smallest)
    order = np.arange(len(rate))
    best = np.zeros((len(rate), size), dtype=int)
    ends = np.append(first[1:], len(table.configuration))
    for i, (begin, end) in enumerate(zip(first, ends, strict=True)):
        best[:, i] = begin + np.argmax(score[:, begin:end], axis=1)
    taken = order[:, None], best
    return Draws(
        np.where(runs, rate[taken], 0.0), {figure: each[taken] for figure, each in figures.items()}, table.outside
    )


def _runs(
    knowledge: Knowledge, language: LanguageModel, space: Space, history: History, count: int, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Which configurations run in each sample, by the memory model. Recordings contain only what ran."""
    runs = np.ones((count, len(space)), bool)
    if not knowledge.models and language.architecture is not None:
        prompts, own = language.prompts, knowledge.resources.get("gpu")
        context = prompts.input_tokens + prompts.output_tokens
        runs &= rng.random((count, 1)) < chances_to_fit(language.architecture, space, history, context, own)
    good = {m.configuration for m in history.good}
    for m in history.measurements:
        if not m.ok and not m.outcome.is_bad_luck and m.configuration not in good and m.configuration in space.index:
            runs[:, space.index[m.configuration]] = False
    return runs
