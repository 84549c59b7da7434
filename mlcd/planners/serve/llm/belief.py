"""What each deployment of a language model may do, by the law, by what other models teach, and by its trials.

A sample is a TPOT and a TTFT for each deployment at each number of requests at once. From these follow the rate

    tokens/s = requests at once x tokens out / (TTFT + (tokens out - 1) TPOT)

and all figures. A deployment is worth its best level that keeps the caps. Samples are drawn before any trial and then
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
"""Times above e^5 s are as bad as e^5 s."""
RATIOS = {
    Figure.TTFT_P95: (Figure.TTFT_P50, np.log(1.6), 0.4),
    Figure.TPOT_P95: (Figure.TPOT_P50, np.log(1.15), 0.15),
    Figure.ITL_P50: (Figure.TPOT_P50, 0.0, 0.15),
    Figure.ITL_P95: (Figure.TPOT_P50, np.log(1.5), 0.4),
    Figure.P95: (Figure.P50, np.log(1.2), 0.15),
    Figure.P99: (Figure.P50, np.log(1.4), 0.25),
}
"""Figures by the one that they follow: the log of the ratio that is expected, and by how much it may differ."""
RATIO_NOISE, RATIO_TRUST = 0.1, 4.0
"""By how much the ratio differs between the loads of one search; and so many loads would have to say otherwise."""
CPU_BANDWIDTH_GB_S, CPU_TFLOPS, CPU_MEMORY_GB = 10.0, 0.1, 16.0
"""Of one core, roughly: trials tell the level."""


USUAL = Architecture(
    params_b=8.0, active_b=8.0, layers=32, hidden=4_096, heads=32, kv_heads=8, head_dim=128, vocab=128_256,
    dense_hidden=14_336, dense_layers=32, full_layers=32,
)  # fmt: skip
"""The sizes of Llama 3.1 8B, for a model that is known by its name alone."""


@dataclass(frozen=True)
class Times:
    """TPOT or TTFT at every load point, before any trial: its law, and the effects that models share.

    The law of TTFT takes TPOT: of samples of TPOT it has a row each.
    """

    law: Floats
    shared: SharedEffects
    prior: TimePrior


@dataclass(frozen=True)
class Table:
    """The load points of a space. `configuration`: which one each belongs to; `at`: where each load is."""

    rows: Rows
    terms: Terms
    configuration: NDArray[np.int_]
    at: dict[tuple[int, int], int]
    tpot: Times
    ttft: Times
    outside: float

    def ttft_with(self, tpot_s: Floats) -> Times:
        """TTFT where TPOT is known to be this, in many samples of all load points."""
        return replace(self.ttft, law=self.terms.log_ttft(self.ttft.prior.coefficients, tpot_s))

    @property
    def requests(self) -> Floats:
        """Requests at once, of each load point."""
        return np.array([point.concurrency for point in self.rows.points], dtype=float)


def draw(knowledge: Knowledge, job: Job, space: Space, history: History, count: int, rng: np.random.Generator) -> Draws:
    """Samples of the best level of each configuration under the caps, by what was seen and all that was measured."""
    table = table_of(ByIdentity(knowledge, space), language_of(job))
    loads, levels = _measured(table, space, history)
    shown = [level.figures for level in levels]
    tpot = drawn_times(table, table.tpot, loads, [each[Figure.TPOT_P50] for each in shown], count, rng)
    ttft = drawn_times(table, table.ttft_with(tpot), loads, [each[Figure.TTFT_P50] for each in shown], count, rng)
    ttft = np.maximum(ttft, table.terms.place_wait_s(tpot))
    ttft[:, loads] = [each[Figure.TTFT_P50] for each in shown]
    figures = _figures(table, tpot, ttft, levels, count, rng)
    rate = table.requests * table.terms.tokens_out / figures[Figure.P50]
    rate[:, loads] = [level.rate for level in levels]
    runs = _runs(knowledge, language_of(job), space, history, count, rng)
    return _best_levels(table, rate, figures, service_of(job).caps, runs, len(space))


def language_of(job: Job) -> LanguageModel:
    """What is particular about a language model. One of unknown sizes is taken for a usual one: trials tell more."""
    language = service_of(job).language
    if language is None:
        raise UserError(f"{job.name} is no language model: engines serve nothing else")
    return replace(language, architecture=language.architecture or USUAL)


@lru_cache(maxsize=16)
def table_of(of: ByIdentity, language: LanguageModel) -> Table:
    """The load points of a space, with what is believed of each before any trial."""
    knowledge, space = of.objects
    prior = prior_of(knowledge)
    points, configuration = [], []
    for i, each in enumerate(space.configurations):
        for point in load_points(knowledge, each, language):
            points.append(point)
            configuration.append(i)
    rows, terms = Rows(points, [""] * len(points)), terms_of(points)
    tpot_law = terms.log_tpot(prior.tpot.coefficients)
    ttft_law = terms.log_ttft(prior.ttft.coefficients, np.exp(tpot_law))
    at = {(i, point.concurrency): row for row, (i, point) in enumerate(zip(configuration, points, strict=True))}
    return Table(
        rows,
        terms,
        np.array(configuration),
        at,
        Times(tpot_law, shared_effects(prior.tpot, terms, rows, prior.systems), prior.tpot),
        Times(ttft_law, shared_effects(prior.ttft, terms, rows, prior.systems, np.exp(tpot_law)), prior.ttft),
        float(np.mean([point.gpu.name not in prior.systems for point in points])),
    )


def prior_of(knowledge: Knowledge) -> Prior:
    """What its models teach; nothing, of a recording in which none was seen; without a recording, all that ships."""
    if knowledge.models:
        return learned_prior(ByIdentity(knowledge))
    return unlearned_prior() if knowledge.source else shipped_prior()


@lru_cache(maxsize=16)
def learned_prior(of: ByIdentity) -> Prior:
    """What the models of a recording teach."""
    (knowledge,) = of.objects
    return learn(tests_of(knowledge))


def tests_of(knowledge: Knowledge) -> list[LoadTest]:
    """Every load test of the seen models."""
    tests = []
    for model in knowledge.models:
        facts = model.facts
        assert facts.architecture is not None, "a recording of engines has the sizes of its models"
        assert facts.prompts is not None, "and the lengths of their requests"
        for knobs, cell in load_tests(model):
            at = deployment(knobs)
            point = LoadPoint(facts.architecture, at, device_of(knowledge, at), facts.prompts, at.concurrency)
            tests.append(LoadTest(facts.name, point, cell.figures[Figure.TTFT_P50], cell.figures[Figure.TPOT_P50]))
    return tests


def load_points(knowledge: Knowledge, configuration: Configuration, language: LanguageModel) -> list[LoadPoint]:
    """A configuration at each number of requests at once that a trial of it shows."""
    at, sizes = deployment_of(configuration, language.engine.name), language.architecture
    assert sizes is not None, "language_of() has seen to that"
    sweep = (at.concurrency,) if at.concurrency else at.sweep or language.sweep
    gpu = device_of(knowledge, at)
    return [LoadPoint(sizes, at, gpu, language.prompts, requests) for requests in sweep]


def device_of(knowledge: Knowledge, at: Deployment) -> Gpu:
    """The numbers of its GPU; of a CPU, by its cores."""
    if at.gpu:
        return gpu_named(at.gpu, knowledge.resources.get("gpu"))
    cores = max(1, at.threads)
    return Gpu("cpu", CPU_MEMORY_GB, CPU_BANDWIDTH_GB_S * cores**0.8, CPU_TFLOPS * cores)


def _measured(table: Table, space: Space, history: History) -> tuple[NDArray[np.int_], list[Level]]:
    """The load points that trials have shown, and what they showed."""
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
    table: Table, times: Times, loads: NDArray[np.int_], shown: Sequence[float], count: int, rng: np.random.Generator
) -> Floats:
    """Samples of a time at every load point, in seconds; what was measured is as it was measured."""
    prior, spread, rows = times.prior, times.shared.spread, table.rows
    logs, middle, every = np.log(shown), np.atleast_2d(times.law + times.shared.middle), np.arange(len(rows.points))
    samples = middle + rng.standard_normal((count, spread.shape[1])) @ spread.T
    samples += rows.own_drawn(prior.variances, count, rng)
    left = prior.noise / rows.left.trust_drawn(count, rng)
    if not len(loads):
        return _seconds(samples + np.sqrt(left) * rows.left.drawn(count, rng))
    across = spread @ spread[loads].T + rows.own_covariance(prior.variances, every, loads)
    errors = prior.noise / rows.left.of(loads).trust(logs - middle[0, loads], across[loads], prior.noise)
    for curve, error in zip(rows.curves[loads], errors, strict=True):
        left[:, rows.curves == curve] = error
    samples += np.sqrt(left) * rows.left.drawn(count, rng)
    across += errors * rows.left.covariance(every, loads)
    samples += (logs - samples[:, loads]) @ np.linalg.solve(across[loads] + JITTER * np.eye(len(loads)), across.T)
    samples[:, loads] = logs
    return _seconds(samples)


def _seconds(logs: Floats) -> Floats:
    return np.asarray(np.exp(np.minimum(logs, LONGEST_LOG_S)))


def _figures(
    table: Table, tpot: Floats, ttft: Floats, levels: Sequence[Level], count: int, rng: np.random.Generator
) -> dict[Figure, Floats]:
    """Every figure of each sample, from TPOT and TTFT and from how quantiles have been to medians in the trials."""
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
    """By how much a ratio differs between loads: as expected, until several trials show how much."""
    around = float(np.var(known)) * len(known) if known else 0.0
    return float(np.sqrt((RATIO_TRUST * RATIO_NOISE**2 + around) / (RATIO_TRUST + len(known))))


def _best_levels(
    table: Table, rate: Floats, figures: dict[Figure, Floats], caps: Sequence[Cap], runs: NDArray[np.bool_], size: int
) -> Draws:
    """Of each configuration the level with the largest rate that keeps the caps; where none does, the smallest load."""
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
    """Which configurations run in each sample: by the memory model, unless a recording has only what ran."""
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
