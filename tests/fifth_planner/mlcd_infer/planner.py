"""`mlcd infer`: which machines, how many, and how many items in a chunk, for a model that reads a whole data set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from mlcd.core.additions import Additions, Axis, Column, Fact, Figure, Point, Series, Table
from mlcd.core.clock import VirtualClock
from mlcd.core.configuration import Configuration, Space
from mlcd.core.decision import Decision
from mlcd.core.errors import UserError
from mlcd.core.history import History
from mlcd.core.job import SIMULATED, Job
from mlcd.core.ledger import Account
from mlcd.core.options import Option
from mlcd.core.place import Cloud
from mlcd.core.planner import Planner
from mlcd.core.strategy import Finish, Probe, Step, Strategy
from mlcd.planners.profilers.training import TrainingProfiler
from mlcd.planners.train.completion import RunToCompletion
from mlcd_infer.block import InferBlock, parse_chunks
from mlcd_infer.nouns import Chunk, InferenceTask, Waiting
from mlcd_infer.simulated import SimulatedInference

MOST_PROBES = 6


@dataclass(frozen=True)
class CheapestFirst:
    """Probe the cheapest configurations that were not tried, a few of them."""

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """The next one, or the end."""
        left = [c for c in space.configurations if c not in history.tried]
        if not left or len(history.measurements) >= MOST_PROBES:
            return Finish(f"{len(history.measurements)} configurations were tried")
        return Probe(min(left, key=lambda c: (c.usd_per_hour, str(c))), "the cheapest that was not tried")


class Infer(Planner):
    """Instance type x number of nodes x chunk."""

    name = "infer"
    summary = "Find machines and a chunk for batch inference, and run it."
    method = "cheapest-first"
    block = InferBlock
    options = (Option("chunks", parse_chunks, "Items in a chunk, such as 8,32,128.", "LIST"),)

    def with_options(self, job: Job, chosen: Mapping[str, Any]) -> Job:
        """With the chunks of the command line, if it names any."""
        job = super().with_options(job, chosen)
        assert isinstance(job.ask, InferenceTask)
        chunks = chosen.get("chunks")
        return replace(job, ask=InferenceTask(chunks)) if isinstance(chunks, tuple) else job

    def place(self, job: Job, elapsed_s: float = 0.0, started_at: datetime | None = None) -> Cloud:
        """The machines of the simulated cloud, each with every chunk."""
        if job.on != SIMULATED:
            raise UserError(f"mlcd infer is a toy: it runs on {SIMULATED}, and not on {job.on}")
        assert isinstance(job.ask, InferenceTask)
        place, settings = super().place(job, elapsed_s, started_at), tuple(Chunk(n) for n in job.ask.chunks)
        choices = tuple(replace(choice, settings=settings) for choice in place.space.choices)
        clock = VirtualClock(elapsed_s)
        backend = SimulatedInference(clock)
        return Cloud(replace(place.space, choices=choices), backend, TrainingProfiler(backend, noise_floor=0.01), clock)

    def search_strategy(self, job: Job) -> Strategy:
        """The only method."""
        return CheapestFirst()

    def run_strategy(self, job: Job, decision: Decision, searched: History) -> Strategy:
        """Run it to its end."""
        assert decision.configuration is not None
        return RunToCompletion(decision.configuration)

    def additions(self, account: Account) -> Additions:
        """How long machines wait for data, by chunk: as a fact, a table and a figure."""
        shown = [(m.configuration, m.rate, m.evidence) for m in account.history.good]
        rows = [(where, rate, seen.share) for where, rate, seen in shown if isinstance(seen, Waiting)]
        columns = [Column(label="Configuration"), Column(label="Items/s", align="right")]
        columns += [Column(label="Waiting for data", unit="%", align="right")]
        least = min((share for _, _, share in rows), default=None)
        facts = [Fact(label="Least waiting", value=f"{100 * least:.0f} %")] if least is not None else []
        table = Table(
            title="Waiting for data",
            columns=columns,
            rows=[[str(where), round(rate, 1), round(100 * share, 1)] for where, rate, share in rows],
        )
        figure = Figure(
            title="Speed by chunk",
            kind="points",
            x=Axis(label="items in a chunk", scale="log"),
            y=Axis(label="items a second"),
            series=_by_type([(where, rate) for where, rate, _ in rows]),
        )
        return Additions(planner=self.name, facts=facts, tables=[table], figures=[figure])


def _by_type(rates: list[tuple[Configuration, float]]) -> list[Series]:
    names = dict.fromkeys(where.offer.name for where, _ in rates)
    return [
        Series(
            name=name,
            points=[
                Point(x=float(where.setting.items), y=rate, label=str(where))
                for where, rate in rates
                if where.offer.name == name and isinstance(where.setting, Chunk)
            ],
        )
        for name in names
    ]


PLANNER = Infer()
