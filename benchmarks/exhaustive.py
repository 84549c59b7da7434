"""Measure every configuration of an engine once, then replay searches on the measurements (llm_live.py, llm_gpu.py).

Measurements are stored at once, a line each, and not repeated. The searches use them as their trials.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import combinations
from math import inf
from pathlib import Path
from typing import Protocol

import numpy as np
from pydantic import ConfigDict, TypeAdapter

from mlcd.clouds.engines.trial import Engines
from mlcd.clouds.serving.trial import Timing
from mlcd.core.backend import Launch, Progress, Provenance, Purpose
from mlcd.core.clock import VirtualClock, WallClock
from mlcd.core.configuration import Configuration, Space
from mlcd.core.drive import search
from mlcd.core.job import Job
from mlcd.core.ledger import Ledger, Started
from mlcd.core.measurement import Measurement
from mlcd.core.strategy import Look, Watch
from mlcd.planners.serve.llm.sweep import Steps, SweepProfiler
from mlcd.planners.serve.nouns import Cap, Figure, Knob, knobs_of, served_by
from mlcd.planners.serve.planner import knowledge_for, serve_method
from mlcd.planners.serve.service_level import best, decide, keeps, refusal, value

SEEDS = (0, 1, 2)
STORED: TypeAdapter[tuple[Measurement]] = TypeAdapter(tuple[Measurement], config=ConfigDict(ser_json_inf_nan="strings"))


class MakeJob(Protocol):
    """Makes the job for these caps, seed and number of trials."""

    def __call__(self, caps: tuple[Cap, ...] = (), seed: int = 0, trials: int | None = None) -> Job: ...


@dataclass(frozen=True)
class Study:
    """The measurements of a model. `state`: MLCD's state folder for the launches."""

    name: str
    job_of: MakeJob
    space: Space
    timing: Timing
    state: Path

    def in_random_order(self, most: int) -> list[Configuration]:
        """The first configurations in a random order."""
        order = np.random.default_rng(0).permutation(len(self.space))
        return [self.space.configurations[at] for at in order[:most]]

    def measure(self, file: Path, most: int, within_s: float = inf, again: bool = False) -> None:
        """Measure what is not stored yet, one after the other, and store each at once.

        `within_s`: start nothing that could end later, judging by the longest so far. `again`: repeat failed ones.
        """
        done = {each.configuration for each in stored(file) if each.ok or not again}
        order = self.in_order(most)
        job, steps, began_s, longest_s = self.job_of(), Steps(), time.monotonic(), 0.0
        backend = Engines(self.state, WallClock(datetime.now(UTC)), self.timing, steps)
        for i, configuration in enumerate(order, start=1):
            if configuration in done:
                continue
            if time.monotonic() - began_s + longest_s > within_s:
                print(f"{self.name} {i}/{len(order)}  the time is over", flush=True)
                return
            seconds, _ = self.space.worst_probe(configuration)
            launch = Launch(f"{self.name}-{os.getpid()}-{i}", configuration, Purpose.PROBE, 1.0, seconds, i)
            m = SweepProfiler(backend, steps).measure(job, launch)
            with file.open("a", encoding="utf-8") as lines:
                lines.write(STORED.dump_json((m,)).decode() + "\n")
            longest_s = max(longest_s, m.seconds)
            rate = f"{m.rate:,.0f} tokens/s" if m.ok else f"{m.ending}\n{m.log}"
            print(f"{self.name} {i}/{len(order)}  {configuration}: {rate}, {m.seconds:.0f} s", flush=True)

    def search(self, measured: Sequence[Measurement], trials: Sequence[int]) -> None:
        """Search with every seed under every cap, compared with the best of all configurations and with random trials.

        Measured without caps, a step ends before its p95 is certain, so the measured value is taken as exact.
        """
        profiler = Stored({m.configuration: as_certain(m) for m in measured})
        print(f"\n{self.name}: {len(profiler.measured)} of {len(self.space)} measured")
        space, measured = subspace(self.space, profiler.measured.__contains__), tuple(profiler.measured.values())
        for caps in caps_of(measured):
            words = ", ".join(map(str, caps)) or "no caps"
            optimum = best(self.job_of(caps), measured)
            if optimum is None:
                print(f"  {words}: nothing keeps them")
                continue
            print(f"  {words}: the best is {optimum.configuration}")
            worth = [value(self.job_of(caps), m) if keeps(self.job_of(caps), m) else 0.0 for m in measured]
            for most in trials:
                for seed in SEEDS:
                    self._search(caps, seed, most, space, profiler, max(worth))
                print(f"    by lot, {most} trials: {_random_baseline(worth, most):.1%} of the best expected")

    def _search(
        self, caps: tuple[Cap, ...], seed: int, most: int, space: Space, profiler: Stored, most_worth: float
    ) -> None:
        job, ledger, clock = self.job_of(caps, seed, most), Ledger(None), VirtualClock()
        book = ledger.begin(job.name, clock, Started(job, space, "benchmark", Provenance.RECORDED, "benchmark"))
        strategy = serve_method(job.search, knowledge_for(job))
        decision = search(strategy, job, space, profiler, book, guard=refusal, decide=decide)
        found = profiler.measured.get(decision.configuration) if decision.configuration is not None else None
        share = value(job, found) / most_worth if found else 0.0
        made = [profiler.measured[m.configuration] for m in book.account.history.measurements]
        count, usd = len(made), sum(m.usd for m in made)
        verdict = "ok" if share >= 0.95 and count <= most else "MISSED"
        print(f"    seed {seed}: {share:.1%} of the best after {count} trials, ${usd:.4f}  {verdict}")


def _random_baseline(worth: Sequence[float], trials: int) -> float:
    """The mean share of the best value that so many random trials find."""
    drawn = [max(each) for each in combinations(sorted(worth), trials)] if len(worth) <= 16 else []
    if not drawn:
        rng = np.random.default_rng(0)
        drawn = [float(rng.permutation(worth)[:trials].max()) for _ in range(10_000)]
    return float(np.mean(drawn)) / max(worth)


def stored(file: Path) -> list[Measurement]:
    """The stored measurements; of repeated ones the last."""
    if not file.is_file():
        return []
    lines = file.read_text(encoding="utf-8").splitlines()
    return list({m.configuration: m for m in (STORED.validate_json(line)[0] for line in lines)}.values())


def as_certain(measurement: Measurement) -> Measurement:
    """The measurement with all figures taken as exact."""
    served = served_by(measurement)
    levels = tuple(replace(level, high=level.figures) for level in served.levels)
    return replace(measurement, evidence=replace(served, high=served.figures, levels=levels))


def subspace(space: Space, keep: Callable[[Configuration], bool]) -> Space:
    """The space with these configurations only."""
    choices = []
    for choice in space.choices:
        kept = tuple(each.setting for each in choice.configurations if keep(each) and each.setting is not None)
        choices += [replace(choice, settings=kept)] if kept else []
    return replace(space, choices=tuple(choices))


def even_half(knobs: Mapping[str, Sequence[Knob]]) -> Callable[[Configuration], bool]:
    """Whether a setting has an even number of second values: each knob, and each pair of them, is varied evenly."""

    def is_in_half(configuration: Configuration) -> bool:
        set_ = dict(knobs_of(configuration))
        return sum(values.index(set_[name]) for name, values in knobs.items()) % 2 == 0

    return is_in_half


def caps_of(measured: Sequence[Measurement]) -> list[tuple[Cap, ...]]:
    """No caps, and caps that two in five of all levels keep: they bind, and are feasible."""
    levels = [level for m in measured for level in served_by(m).levels]
    found: list[tuple[Cap, ...]] = [()]
    for figures in ((Figure.TPOT_P95,), (Figure.TPOT_P95, Figure.TTFT_P95)):
        limits = [float(np.quantile([level.figures[figure] for level in levels], 0.4)) for figure in figures]
        found.append(tuple(Cap(figure, float(f"{at:.2g}")) for figure, at in zip(figures, limits, strict=True)))
    return found


@dataclass(frozen=True)
class Stored:
    """A profiler that returns stored measurements."""

    measured: Mapping[Configuration, Measurement]

    def with_listener(self, progress: Progress) -> Stored:
        return self

    def measure(self, job: Job, launch: Launch, look: Look | None = None, watch: Watch | None = None) -> Measurement:
        return self.measured[launch.configuration]

    def reclaim(self, label: str) -> None:
        return None
