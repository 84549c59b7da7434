"""`mlcd deploy`: keep the decided engine running on this machine, as a launch of the run.

It is in the ledger like every launch: its worst case is reserved before it starts, it ends when the budget is used up
(less what measuring it once more may cost), and its actual cost is settled however it ends. While it runs, its caps are
watched (`watch_caps`); when they are broken for good, a warning is written. If it had no more requests than it can
take, the engine has become slower: it is stopped and measured again, and the new decision is deployed.
"""

from __future__ import annotations

import shlex
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from mlcd.clouds.local.gpus import HeldGpus
from mlcd.clouds.local.workspace import Workspace
from mlcd.clouds.servers.settings import server_cores
from mlcd.clouds.serving.histograms import Histograms, ask_histograms
from mlcd.clouds.serving.trial import Timing, Trials
from mlcd.clouds.serving.watch_caps import EVERY_S, CapsBroken, watch_caps, watchable_caps
from mlcd.core import drive
from mlcd.core.backend import Launch, Purpose
from mlcd.core.configuration import Configuration, Space
from mlcd.core.drive import Stop, never
from mlcd.core.errors import UserError, WrongState
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.launching import close_launch
from mlcd.core.ledger import Book, Reserved, Resumed, Stopped, Warned
from mlcd.core.measurement import Ended, Measurement, Outcome
from mlcd.core.planner import planner_of
from mlcd.core.runs.run import Run
from mlcd.core.strategy import Finish, Probe
from mlcd.core.units import format_rate, format_usd
from mlcd.planners.serve.llm.capacity import replica
from mlcd.planners.serve.llm.flags import CommandLine, admitting, command_line
from mlcd.planners.serve.llm.replicas import admitted, chosen_trial, levels_of
from mlcd.planners.serve.nouns import Knob, knobs_of, service_of

READY_TIMEOUT_S = 2.0


@dataclass(frozen=True)
class Running:
    """An engine that is ready. `alive`: whether it still runs; `read`: its latency histograms."""

    url: str
    alive: Callable[[], bool]
    read: Callable[[], Histograms | None]


Engine = Callable[[Job, Launch, Mapping[str, Knob]], AbstractContextManager[Running | Ended]]
"""Starts an engine with these knobs, or says how it failed. The engine is stopped when the block is left."""
Tell = Callable[[str], None]


def deploy(run: Run, engine: Engine, tell: Tell, stop: Stop = never, every_s: float = EVERY_S) -> str:
    """Keep the decision running until its budget is used up, the engine ends or `stop` says so; return the reason."""
    book, measures = run.book, 1
    while True:
        ended, again = _launched(run, engine, tell, stop, every_s, measure_again=measures > 0)
        if not again:
            break
        measures -= 1
        decision = drive.search(
            OnceMore(ended.configuration, len(book.history.measurements)),
            run.job,
            run.cloud.space,
            run.cloud.profiler,
            book,
            guard=planner_of(run.job).guard(run.job),
            decide=planner_of(run.job).decide,
            stop=stop,
        )
        tell(f"measured again: {decision.configuration or decision.binding}")
        if decision.configuration is None or not decision.certified:
            ended = replace(ended, detail="measured again, but no configuration certainly meets the caps")
            break
    book.write(Stopped(f"the deployment ended: {ended.detail}"))
    return ended.detail


@dataclass(frozen=True)
class OnceMore:
    """A strategy that tries one configuration again. `before`: the number of trials so far."""

    configuration: Configuration
    before: int

    def next_step(self, job: Job, space: Space, history: History) -> Probe | Finish:
        """The trial, unless it was already made or refused."""
        refused = [refusal.because for refusal in history.refusals if refusal.configuration == self.configuration]
        if len(history.measurements) > self.before or refused:
            return Finish(refused[-1] if refused else "measured again, since the deployment broke its caps")
        return Probe(self.configuration, because="its deployment breaks the caps")


def _launched(
    run: Run, engine: Engine, tell: Tell, stop: Stop, every_s: float, measure_again: bool
) -> tuple[Measurement, bool]:
    """Run one launch of the decision, from reservation to settlement; and whether to measure again after it."""
    book, again = run.book, False
    m = chosen_trial(run.name, book.account)
    order, worst_usd = _order(run, m)
    if book.account.stopped:
        book.write(Resumed("the user deploys it"))
    book.write(Reserved(order, "deployed", worst_usd, order.lifetime_s or 0.0))
    began_s = book.clock.elapsed_s()

    def measure() -> Measurement:
        nonlocal again
        knobs = _knobs(run.job, m)
        with engine(run.job, order, knobs) as started:
            if isinstance(started, Ended):
                return _ended(book, order, began_s, started.outcome, started.detail)
            tell(f"ready: {started.url}")
            until_s = inf if order.lifetime_s is None else began_s + order.lifetime_s
            until_stopped = replace(started, alive=lambda: started.alive() and not stop())
            for broken in _broken_caps(run.job, until_stopped, book, until_s, every_s, tell):
                again = _warn(run, m, broken, tell, measure_again)
                if again:
                    return _ended(book, order, began_s, Outcome.OK, "ended to be measured again")
            lives = started.alive()
        why = "the user stopped it" if stop() else "its budget is used up" if lives else "the engine is gone"
        return _ended(book, order, began_s, Outcome.OK if lives else Outcome.FAILED, why)

    entry, error = close_launch(run.job, order, run.cloud.profiler, measure, lambda: book.clock.elapsed_s() - began_s)
    if entry is not None:
        book.write(entry)
    if error is not None:
        raise error
    return book.account.history.runs[-1], again


def _order(run: Run, m: Measurement) -> tuple[Launch, float]:
    """The launch and its highest possible cost; WrongState if the budget leaves nothing for it."""
    account, budget = run.book.account, run.job.goal.budget_usd
    lifetime_s = None
    if budget is not None:
        left_usd = budget - account.history.spent_usd
        again_usd = run.cloud.space.worst_probe(m.configuration)[1]
        lifetime_s = max(0.0, left_usd - again_usd) / m.configuration.usd_per_hour * 3_600
        if lifetime_s <= m.startup_s:
            raise WrongState(
                f"{format_usd(left_usd)} of its budget is left, and {format_usd(again_usd)} of that is reserved to "
                f"measure it once more: raise it with mlcd deploy {run.name} --budget USD"
            )
    label = f"{run.name}-{account.orders + 1}"
    order = Launch(label, m.configuration, Purpose.RUN, 0.0, lifetime_s, account.launches, account.rounds)
    return order, m.configuration.worst_usd(lifetime_s or 0.0)


def _knobs(job: Job, m: Measurement) -> dict[str, Knob]:
    language = service_of(job).language
    engine = language.engine.name if language is not None else ""
    return admitting(engine, dict(knobs_of(m.configuration)), admitted(job, m))


def _broken_caps(
    job: Job, started: Running, book: Book, until_s: float, every_s: float, tell: Tell
) -> Iterator[CapsBroken]:
    caps = service_of(job).caps
    watched = watchable_caps(caps, started.read())
    for cap in caps:
        if cap not in watched:
            tell(f"{cap}: not watched, since the engine has no metric for it")
    return watch_caps(watched, started.read, started.alive, book.clock, until_s, every_s)


def _warn(run: Run, m: Measurement, broken: CapsBroken, tell: Tell, measure_again: bool) -> bool:
    """Write a warning about broken caps to the ledger; return whether to measure again."""
    service, most = service_of(run.job), admitted(run.job, m)
    prompts = service.language.prompts if service.language is not None else None
    levels = [level for level in levels_of(m) if most is not None and level.concurrency <= most]
    capacity = (
        replica(levels, service.caps, prompts.output_tokens) if prompts is not None and not prompts.file else None
    )
    words, more = f"the caps are broken: {broken.words}", False
    if capacity is not None and broken.rate is not None and broken.rate > capacity.rate:
        words += (
            f"; {format_rate(broken.rate)} requests a second came, and one replica takes {format_rate(capacity.rate)}: "
            f"add replicas (mlcd replicas {run.name} --rate RATE)"
        )
    elif measure_again:
        words, more = f"{words}; it is measured again", True
    run.book.write(Warned(words))
    tell(words)
    return more


def _ended(book: Book, order: Launch, began_s: float, outcome: Outcome, why: str) -> Measurement:
    seconds = book.clock.elapsed_s() - began_s
    return Measurement(order.configuration, outcome, seconds, order.bill_usd(seconds), detail=why)


@dataclass(frozen=True)
class OnThisHost(Trials):
    """Starts engines at an address of this machine, whose port must be free."""

    host: str = field(default="127.0.0.1", kw_only=True)
    port: int = field(default=8000, kw_only=True)

    def check(self) -> None:
        """UserError if the port is taken."""
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((self.host, self.port))
            except OSError as error:
                raise UserError(f"{self.host}:{self.port}: {error.strerror}; choose another with --port") from None

    @contextmanager
    def __call__(self, job: Job, launch: Launch, knobs: Mapping[str, Knob]) -> Iterator[Running | Ended]:
        """Start the engine and wait until it is ready."""
        model, made = _model(job), command_here(job, knobs, self.host, self.port)
        url = f"http://{'127.0.0.1' if self.host == '0.0.0.0' else self.host}:{self.port}"
        with ExitStack() as stack:
            held = stack.enter_context(HeldGpus(launch.configuration))
            trial = stack.enter_context(self.begun(launch))
            devices = held.variables(0) if held.gpus else {}
            offline = {"HF_HUB_OFFLINE": "1"} if Path(model).exists() else {}
            variables = {**offline, **made.environment, **devices}
            command = ["sh", "-c", f"exec {shlex.join(made.arguments)}"]
            server = trial.start(command, variables, Workspace(Path(job.folder or ".")))
            if (ended := trial.wait_until_ready(server, lambda: _answers(url))) is not None:
                yield ended
                return
            yield Running(url, lambda: server.popen.poll() is None, lambda: ask_histograms(url))


def command_here(job: Job, knobs: Mapping[str, Knob], host: str, port: int) -> CommandLine:
    """The command that starts the engine on this machine. The model's name in its API is that of the exports."""
    service, model = service_of(job), _model(job)
    assert service.language is not None
    engine, name = service.language.engine, service.model.name if Path(model).exists() else ""
    cores = sorted(server_cores(int(knobs["threads"]))) if "threads" in knobs else None
    return command_line(engine.name, model, knobs, start=engine.command, name=name, host=host, port=port, cores=cores)


def _model(job: Job) -> str:
    service = service_of(job)
    return service.path or service.model.name


def engine_here(run: Run, home: Path, host: str, port: int) -> OnThisHost:
    """The deployment of a run on this machine, with the start-up limit of its trials."""
    startup_s = max(run.cloud.space.startup_limit_s, 60.0)
    return OnThisHost(home, run.book.clock, Timing(startup_s=startup_s), host=host, port=port)


def _answers(url: str) -> bool:
    try:
        with urlopen(f"{url}/v1/models", timeout=READY_TIMEOUT_S):
            return True
    except (OSError, URLError, ValueError):
        return False
