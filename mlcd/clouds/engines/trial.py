"""Trials on engines of language models: the engine is started once, and loaded with more and more requests at once.

Its start is part of the trial, and billed with it. A step of the sweep ends when it is known well enough, or its time
is over; time that it leaves goes to the steps after it.
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
"""The longest silence of an engine that is asked whether it works."""
WARM_UP = 2
"""Requests before the first step that are not counted: an engine's very first ones take longer."""


Tried = Mapping[int, Sequence[Sample]]
"""The reports of each step so far, by its requests at once."""


class Pace(Protocol):
    """How a sweep goes on."""

    def known(self, service: ServingTask, reports: Sequence[Sample]) -> bool:
        """Whether the reports of a step tell enough of it."""
        ...

    def following(
        self, service: ServingTask, sweep: Sequence[int], tried: Mapping[int, Sequence[Sample]]
    ) -> int | None:
        """The requests at once to try after these steps; None to end the sweep."""
        ...


class Every:
    """Every step of the sweep, each for its full time."""

    def known(self, service: ServingTask, reports: Sequence[Sample]) -> bool:
        """Never: a step has its time."""
        return False

    def following(
        self, service: ServingTask, sweep: Sequence[int], tried: Mapping[int, Sequence[Sample]]
    ) -> int | None:
        """The next of the sweep."""
        return next((requests for requests in sweep if requests not in tried), None)


@dataclass(frozen=True)
class Engines(Trials):
    """Serves a language model with a launch's knobs and sweeps the requests at once, at this `pace`."""

    timing: Timing = field(default_factory=lambda: Timing(startup_s=300.0, every_s=0.5, timeout_s=120.0))
    pace: Pace = field(default_factory=Every)

    def run(self, job: Job, launch: Launch) -> Events:
        """Start the engine unless it runs already, sweep, end it."""
        service, knobs = service_of(job), dict(knobs_of(launch.configuration))
        language = language_of(service)
        with ExitStack() as stack:
            with before_ordering():
                start = start_of(language.engine, service.path, knobs)
                client = OpenAi(start.url, chat=language.prompts.chat)
                if start.command and client.is_ready():
                    raise UserError(f"{start.url}: something answers there before the engine was started: end it first")
                held = stack.enter_context(HeldGpus(launch.configuration))
            trial = stack.enter_context(self.begun(launch, crashed))
            devices = held.variables(0) if held.gpus else {}
            if start.command and (ended := _not_ready(trial, start, devices, Path(job.folder or "."))) is not None:
                yield ended
                return
            cores = other_cores(int(knobs["threads"])) if "threads" in knobs else None
            yield from self._sweep(trial, service, language, client, cores)

    def check(self, service: ServingTask, stall_s: float = CHECK_S) -> None:
        """UserError, on one line, unless an engine that runs already answers a whole request as it should."""
        language = language_of(service)
        if language.engine.runs_already:
            client = OpenAi(language.engine.url, chat=language.prompts.chat, stall_s=stall_s)
            try:
                asyncio.run(_answered(client.targets(language.prompts)()))
            except (BackendError, RequestFailed) as error:
                why = str(error).removeprefix(f"{client.url}: ")
                raise UserError(f"{client.url}: {why}; is it an engine with OpenAI's API, and is it well?") from None

    def _sweep(
        self, trial: Trial, service: ServingTask, language: LanguageModel, client: OpenAi, cores: set[int] | None
    ) -> Events:
        """One step after the other; each sample has its concurrency and what the engine told of itself."""
        kind, tokens, tried = kind_of(language.engine), 0.0, dict[int, list[Sample]]()
        vocab = language.architecture.vocab if language.architecture is not None else 0
        try:
            requests = client.targets(language.prompts, trial.launch.ordinal, vocab)
        except BackendError as error:
            why = str(error).removeprefix(f"{client.url}: ")  # its port is another each time
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
                told = engine_load(kind, client.url) if kind is not None else None
                reports.append(_of_step(event, concurrency, tokens, told))
                yield reports[-1]
                if trial.now_s() >= until_s or self.pace.known(service, reports):
                    break
            tokens = reports[-1].samples if reports else tokens


@dataclass(frozen=True)
class _Times:
    """When each step of a sweep ends that began at `ready_s`."""

    ready_s: float
    trial_s: float
    sweep: Sequence[int]

    def until_s(self, concurrency: int, now_s: float) -> float | None:
        """The end of a step that begins now; None where too little time is left for one between two of the sweep."""
        share_s, end_s = self.trial_s / len(self.sweep), self.ready_s + self.trial_s
        if concurrency in self.sweep:
            return self.ready_s + share_s * (self.sweep.index(concurrency) + 1)
        return min(end_s, now_s + share_s) if end_s - now_s > share_s / 2 else None


async def _answered(target: Target) -> None:
    """Send one request; RequestFailed unless it is answered as it should be."""
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
    """So many requests at once. If the first ones fail, that is what it tells."""
    try:
        yield from trial.load(requests, Closed(concurrency), warm_up)
    except BackendError as error:
        yield _failing(trial, concurrency, str(error))


def _failing(trial: Trial, concurrency: int, why: str) -> Sample:
    return Sample(trial.now_s(), 0.0, evidence=Window(failures=1, error=why, concurrency=concurrency))


def _of_step(sample: Sample, concurrency: int, tokens: float, told: EngineLoad | None) -> Sample:
    """A sample of the whole sweep: its tokens come after those of the steps before."""
    window = sample.evidence if isinstance(sample.evidence, Window) else Window()
    return replace(
        sample, samples=tokens + sample.samples, evidence=replace(window, concurrency=concurrency, engine=told)
    )


def language_of(service: ServingTask) -> LanguageModel:
    """What is particular about the language model that is served; asking another model is a bug."""
    if service.language is None:
        raise ValueError(f"{service.model.name} is no language model")
    return service.language
