"""Trials on language-model engines: the engine is started once and load-tested at increasing concurrency.

The start is part of the trial, and billed with it. A step of the sweep ends when it has been measured well enough, or
its time is over; unused time goes to later steps.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from mlcd.clouds.engines.crash import crashed
from mlcd.clouds.engines.metrics import engine_load
from mlcd.clouds.engines.start import Start, kind_of, start_of
from mlcd.clouds.launches import before_ordering
from mlcd.clouds.load.generate import Closed, MakeTarget, RequestFailed, Target
from mlcd.clouds.load.openai import OpenAi
from mlcd.clouds.local.gpus import HeldGpus
from mlcd.clouds.local.workspace import Workspace
from mlcd.clouds.servers.settings import other_cores
from mlcd.clouds.serving.live import pinned_to
from mlcd.clouds.serving.trial import Timing, Trial, Trials
from mlcd.core.backend import Events, Launch
from mlcd.core.errors import BackendError, UserError
from mlcd.core.job import Job
from mlcd.core.measurement import Ended, Sample
from mlcd.planners.serve.llm.nouns import EngineLoad, LanguageModel
from mlcd.planners.serve.nouns import ServingTask, Window, knobs_of, service_of

READY_TIMEOUT_S = 1.0
"""Timeout of a readiness check: an engine that hangs is not ready."""
CHECK_S = 20.0
"""The longest silence of an engine in the check before a run."""
WARM_UP = 2
"""Requests before the first step that are not counted: an engine's first ones take longer."""


class Pace(Protocol):
    """Decides when a step of a sweep ends, and which one follows."""

    def known(self, service: ServingTask, reports: Sequence[Sample]) -> bool:
        """Whether the reports of a step are enough."""
        ...

    def following(
        self, service: ServingTask, sweep: Sequence[int], tried: Mapping[int, Sequence[Sample]]
    ) -> int | None:
        """The concurrency to try after these steps; None to end the sweep."""
        ...


class EveryStep:
    """Runs every step of the sweep for its full time."""

    def known(self, service: ServingTask, reports: Sequence[Sample]) -> bool:
        """Never, so that a step takes its full time."""
        return False

    def following(
        self, service: ServingTask, sweep: Sequence[int], tried: Mapping[int, Sequence[Sample]]
    ) -> int | None:
        """The next step of the sweep."""
        return next((requests for requests in sweep if requests not in tried), None)


@dataclass(frozen=True)
class Engines(Trials):
    """Serves a language model with a launch's knobs and sweeps the concurrency at this `pace`."""

    timing: Timing = field(default_factory=lambda: Timing(startup_s=300.0, every_s=0.5, timeout_s=120.0))
    pace: Pace = field(default_factory=EveryStep)

    def run(self, job: Job, launch: Launch) -> Events:
        """Start the engine unless it is already running, sweep, stop it."""
        service, knobs = service_of(job), dict(knobs_of(launch.configuration))
        language = language_of(service)
        with ExitStack() as stack:
            with before_ordering():
                start = start_of(language.engine, service.path, knobs)
                client = OpenAi(start.url, chat=language.prompts.chat)
                if start.command and client.is_ready():
                    raise UserError(f"{start.url}: a server is already running there: stop it first")
                held = stack.enter_context(HeldGpus(launch.configuration))
            trial = stack.enter_context(self.begun(launch, crashed))
            devices = held.variables(0) if held.gpus else {}
            if start.command and (ended := _not_ready(trial, start, devices, Path(job.folder or "."))) is not None:
                yield ended
                return
            cores = other_cores(int(knobs["threads"])) if "threads" in knobs else None
            yield from self._sweep(trial, service, language, client, cores)

    def check(self, service: ServingTask, stall_s: float = CHECK_S) -> None:
        """UserError unless an engine that is already running answers a whole request correctly."""
        language = language_of(service)
        if language.engine.runs_already:
            client = OpenAi(language.engine.url, chat=language.prompts.chat, stall_s=stall_s)
            try:
                asyncio.run(_answered(client.targets(language.prompts)()))
            except (BackendError, RequestFailed) as error:
                why = str(error).removeprefix(f"{client.url}: ")
                raise UserError(f"{client.url}: {why}; check that it is a working engine with OpenAI's API") from None

    def _sweep(
        self, trial: Trial, service: ServingTask, language: LanguageModel, client: OpenAi, cores: set[int] | None
    ) -> Events:
        """Run the steps; each sample has its concurrency and the engine's own metrics."""
        kind, tokens, tried = kind_of(language.engine), 0.0, dict[int, list[Sample]]()
        vocab = language.architecture.vocab if language.architecture is not None else 0
        try:
            requests = client.targets(language.prompts, trial.launch.ordinal, vocab)
        except BackendError as error:
            why = str(error).removeprefix(f"{client.url}: ")  # the port differs from trial to trial
            yield _failing(trial, language.sweep[0], why)
            return
        times = _Times(trial.now_s(), service.trial_s, language.sweep)
        while (concurrency := self.pace.following(service, language.sweep, tried)) is not None:
            until_s = times.until_s(concurrency, trial.now_s())
            if until_s is None:
                return
            reports = tried.setdefault(concurrency, [])
            for event in _step(trial, pinned_to(cores, requests), concurrency, 0 if len(tried) > 1 else WARM_UP):
                if isinstance(event, Ended):
                    yield event
                    return
                engine = engine_load(kind, client.url) if kind is not None else None
                reports.append(_of_step(event, concurrency, tokens, engine))
                yield reports[-1]
                if trial.now_s() >= until_s or self.pace.known(service, reports):
                    break
            tokens = reports[-1].samples if reports else tokens


@dataclass(frozen=True)
class _Times:
    """The end time of each step of a sweep that began at `ready_s`."""

    ready_s: float
    trial_s: float
    sweep: Sequence[int]

    def until_s(self, concurrency: int, now_s: float) -> float | None:
        """The end of a step that begins now; None if too little time is left for an additional step in between."""
        share_s, end_s = self.trial_s / len(self.sweep), self.ready_s + self.trial_s
        if concurrency in self.sweep:
            return self.ready_s + share_s * (self.sweep.index(concurrency) + 1)
        return min(end_s, now_s + share_s) if end_s - now_s > share_s / 2 else None


async def _answered(target: Target) -> None:
    """Send one request; RequestFailed unless the answer is correct."""
    try:
        await target.send()
    finally:
        await target.close()


def _not_ready(trial: Trial, start: Start, devices: dict[str, str], folder: Path) -> Ended | None:
    """Start an engine and wait for it; None when it is ready, or how it failed."""
    environment = {**(start.environment or {}), **devices}
    server = trial.start(["sh", "-c", start.command], environment, Workspace(folder))
    return trial.wait_until_ready(server, OpenAi(start.url, timeout_s=READY_TIMEOUT_S).is_ready)


def _step(trial: Trial, requests: MakeTarget, concurrency: int, warm_up: int) -> Events:
    """Run one step. If its warm-up requests fail, the step's only sample is that failure."""
    try:
        yield from trial.load(requests, Closed(concurrency), warm_up)
    except BackendError as error:
        yield _failing(trial, concurrency, str(error))


def _failing(trial: Trial, concurrency: int, why: str) -> Sample:
    return Sample(trial.now_s(), 0.0, evidence=Window(failures=1, error=why, concurrency=concurrency))


def _of_step(sample: Sample, concurrency: int, tokens: float, engine: EngineLoad | None) -> Sample:
    """A step's sample as a sample of the whole sweep: the tokens of earlier steps are added."""
    window = sample.evidence if isinstance(sample.evidence, Window) else Window()
    evidence = replace(window, concurrency=concurrency, engine=engine)
    return replace(sample, samples=tokens + sample.samples, evidence=evidence)


def language_of(service: ServingTask) -> LanguageModel:
    """The language-model part of a serving task. A task without one is a bug."""
    if service.language is None:
        raise ValueError(f"{service.model.name} is no language model")
    return service.language
