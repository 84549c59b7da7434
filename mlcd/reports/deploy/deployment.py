"""The deployment of a serving run's decision: its knobs with their roles in a server, and the exported files.

A number that a target's field cannot hold exactly is never rounded: it is listed in the file as not set.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from mlcd.core.errors import WrongState
from mlcd.core.ledger import Account
from mlcd.planners.serve.nouns import Counted, Figure, Knob, Knobs, ServingTask, knobs_of, served_by, service_of
from mlcd.planners.serve.targets import TARGETS
from mlcd.reports.serve.words import accuracy_words, decision_sentence

LANGUAGE = {Figure.TTFT_P50, Figure.TTFT_P95, Figure.ITL_P50, Figure.ITL_P95}


class Part(Enum):
    """The role of a knob in a server; the value lists the knob names with that role."""

    BATCH = ("batch",)
    WAIT = ("max_wait_ms",)
    THREADS = ("threads",)
    CORES = ("cores", "cpu_cores")
    MEMORY = ("memory_gb",)
    PRECISION = ("precision",)
    SHARE = ("sm_share",)
    GPUS = ("gpus", "n_gpus")
    INSTANCES = ("instances",)
    LOAD = ("users", "concurrency")
    OTHER = ()


HEADROOM = 1.25
"""Factor on the measured peak memory: a test of a minute does not show the fragmentation of a week."""
SERVER_GB = 1.0
"""Memory allowed for a server that was not measured: Triton's backends need some hundred MB before any model."""
OWN: Mapping[str, Knob] = {"threads": 1, "batch": 1, "max_wait_ms": 5.0}
"""Defaults of MLCD's own server, exported for settings that were no knobs. A test compares them."""


@dataclass(frozen=True, slots=True)
class PlacedKnob:
    """A knob and its place in the exported files. Without `where` it is not in them, and `note` says what to do."""

    name: str
    value: Knob
    where: str = ""
    note: str = ""

    def __str__(self) -> str:
        name = self.name if re.fullmatch(r"[\w.-]+", self.name, re.ASCII) else json.dumps(self.name)
        setting = f"{name} = {json.dumps(self.value)}"
        if not self.where:
            return f"NOT IN HERE: {setting}: {self.note}"
        return f"{setting}: {self.where}" + (f" ({self.note})" if self.note else "")


@dataclass(frozen=True)
class Deployment:
    """The decided configuration of a run. `name`: valid for folders and clusters.

    `server`: the server of its trials, such as 'mlserver 1.7.1', if that is a deployment target. `peak_gb`: its peak
    memory. `accuracy`: a note about the outputs, if the precision is not the model's own.
    """

    run: str
    name: str
    sentence: str
    source: str
    path: str
    knobs: Knobs
    own: Mapping[str, Knob] = field(default_factory=dict)
    server: str = ""
    peak_gb: float | None = None
    accuracy: str = ""

    @property
    def settings(self) -> Mapping[str, Knob]:
        """All knobs, and the defaults of the trials' server for settings that were no knobs."""
        return {**self.own, **dict(self.knobs)}

    def number(self, part: Part) -> float | None:
        """The value of the knob with this role, if a file can hold it exactly."""
        name = self.name_of(part)
        return holds(part, self.settings[name]) if name is not None else None

    def whole(self, part: Part) -> int | None:
        """The same as an integer."""
        number = self.number(part)
        return None if number is None else int(number)

    @property
    def cores(self) -> float | None:
        """Cores of its machine. Without such a knob, a server on the CPU was pinned to as many cores as threads."""
        stated = self.number(Part.CORES)
        return self.number(Part.THREADS) if stated is None and not self.on_gpu else stated

    def name_of(self, part: Part) -> str | None:
        """The name of the first knob with this role."""
        return next((name for name in self.settings if part_of(name) is part), None)

    @property
    def on_gpu(self) -> bool:
        """Whether the model was served on a GPU, or a share of one."""
        return any(self.name_of(part) is not None for part in (Part.SHARE, Part.GPUS))

    def measured_on(self, server: str) -> bool:
        """Whether the trials ran on this server."""
        return self.server.partition(" ")[0] == server

    def notes(self, to: str) -> tuple[str, ...]:
        """Notes on the files for this tool: whether their figures were measured on its server, memory, accuracy."""
        server = TARGETS[to].server
        if self.measured_on(server):
            measured = f"measured on {self.server}, with the settings of these files"
        else:
            measured = (
                f"NOT CERTIFIED on {server}: rate and latency were measured elsewhere ({self.source}); "
                f"measure it with mlcd serve MODEL --target {to}"
            )
        return tuple(each for each in (measured, self.memory(server)[1], self.accuracy) if each)

    def memory(self, server: str) -> tuple[float | None, str]:
        """GB of main memory for this server, and a note if it does not follow from a knob."""
        held, peak = self.number(Part.MEMORY), self.peak_gb
        if self.on_gpu:
            return None, ""
        if self.measured_on(server):
            if held is not None or peak is None:
                return held, ""
            gb = math.ceil(100 * HEADROOM * peak) / 100
            return gb, f"memory {gb:g} GB: {HEADROOM:g} times the {peak:.3g} GB that {self.server} used at most"
        took = held if peak is None else peak
        if took is None:
            return None, ""
        gb = math.ceil(10 * (SERVER_GB + took)) / 10
        if held is not None and held >= gb:
            return held, ""
        return gb, (
            f"memory {gb:g} GB is an estimate, since {server} was not measured: {SERVER_GB:g} GB for the server itself "
            f"and the {took:.3g} GB of the trials' server"
        )

    @property
    def as_it_is(self) -> bool:
        """Whether the model's own file was served, not a quantised one."""
        name = self.name_of(Part.PRECISION)
        return name is None or self.settings[name] == "fp32"

    def placed(self, fields: Mapping[Part, str], notes: Mapping[Part, str], server: str) -> tuple[PlacedKnob, ...]:
        """The place of each knob. `fields`: a target's fields by role; `notes`: what to do for roles without one."""
        gb, differs = self.memory(server)
        if differs:  # this server needs another amount than the trials' server
            fields = {part: field for part, field in fields.items() if part is not Part.MEMORY}
            notes = {**notes, Part.MEMORY: f"this was the limit of the trials' server; {server} needs {gb:g} GB"}
        return tuple(self._placed(name, value, fields, notes) for name, value in self.settings.items())

    def _placed(self, name: str, value: Knob, fields: Mapping[Part, str], notes: Mapping[Part, str]) -> PlacedKnob:
        part = part_of(name)
        note = "" if name in dict(self.knobs) else "not a knob of this run: the setting of its trials' server"
        if part is Part.PRECISION and value == "fp32":
            return PlacedKnob(name, value, "the model's file, unchanged", note)
        if self.name_of(part) != name and part in SINGLE:
            return PlacedKnob(name, value, note=f"the knob {self.name_of(part)} sets this")
        if holds(part, value) is None or part not in fields:
            return PlacedKnob(name, value, note=notes.get(part, "these files have no field for it; set it yourself"))
        return PlacedKnob(name, value, fields[part], note)


SINGLE = frozenset(Part) - {Part.OTHER, Part.LOAD, Part.PRECISION}
"""Roles that only one knob can have."""


def part_of(name: str) -> Part:
    """The role of a knob by its name."""
    return next((part for part in Part if name in part.value), Part.OTHER)


def holds(part: Part, value: Knob) -> float | None:
    """The number, if fields of this role hold it exactly; None if not, or if it is not a number."""
    if part not in SINGLE or isinstance(value, str | bool) or not math.isfinite(value):
        return None
    number = float(value)
    if part is Part.SHARE:
        return number if 0 < number <= 100 else None
    steps = {Part.WAIT: 1e3, Part.CORES: 1e3, Part.MEMORY: 1e9}.get(part, 1.0)  # microseconds, milli-cores, bytes
    least = 0.0 if part is Part.WAIT else 1 / steps
    return number if least <= number < 2**31 and round(number * steps) / steps == number else None


def deployment_of(run: str, account: Account) -> Deployment:
    """The decided deployment of a run; WrongState if there is none, or these targets cannot serve it."""
    job, decision = account.job, account.decision
    if not isinstance(job.ask, ServingTask):
        raise WrongState(f"run '{run}' trains a job: export it with --to skypilot")
    if decision is None or decision.configuration is None:
        raise WrongState(f"run '{run}' has chosen no configuration; there is nothing to export")
    service, place = service_of(job), decision.configuration
    if _speaks(service, account):
        raise WrongState(f"run '{run}' serves a language model, not an ONNX file; see its knobs with: mlcd show {run}")
    own = OWN if service.endpoint is None and service.path else {}
    m = next((m for m in account.searched.good if m.configuration == place), None)
    served = served_by(m) if m is not None else None
    return Deployment(
        run,
        slug(service.model.name),
        line(decision_sentence(decision, job, account.searched)),
        _source(service, account),
        service.file,
        knobs_of(place),
        {name: value for name, value in own.items() if part_of(name) not in {part_of(k) for k, _ in knobs_of(place)}},
        served.server if served is not None else "",
        served.peak_gb if served is not None else None,
        accuracy_words(service, place),
    )


def slug(name: str) -> str:
    """A name valid for folders, clusters and servers: lower-case letters, digits and dashes, a letter first."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:50].strip("-")
    return plain if re.match(r"[a-z]", plain) else f"model-{plain}".strip("-")


def line(words: str) -> str:
    """The user's text on one line, safe in a comment."""
    return " ".join("".join(c if c.isprintable() else " " for c in words).split())


def _source(service: ServingTask, account: Account) -> str:
    if service.target:
        return f"{account.provenance}, of {TARGETS[service.target].server}"
    if service.endpoint is not None:
        return line(f"{account.provenance}, of the server at {service.endpoint.url}")
    return f"{account.provenance}, of MLCD's own server" if service.path else str(account.provenance)


def _speaks(service: ServingTask, account: Account) -> bool:
    measured = {figure for m in account.searched.good for figure in served_by(m).figures}
    figures = measured | {cap.figure for cap in service.caps}
    return service.counted is Counted.TOKENS or bool(figures & LANGUAGE)


QUANTISE = (
    "python -c \"from onnxruntime.quantization import *; quantize_dynamic('MODEL', '{}', weight_type=QuantType.QInt8)\""
)


@dataclass(frozen=True)
class Export:
    """Exported files. `files`: by path. `main`: the path of the main one. `model_at`: where the model's file goes.
    `start`: the command that uses the folder. `notes`: remarks for the user.
    """

    files: Mapping[str, str]
    main: str
    knobs: tuple[PlacedKnob, ...]
    model_at: str
    start: str
    notes: tuple[str, ...] = ()

    @property
    def missing(self) -> tuple[PlacedKnob, ...]:
        """The knobs that are not in the files."""
        return tuple(each for each in self.knobs if not each.where)


def header(deployment: Deployment, placed: tuple[PlacedKnob, ...], to: str) -> str:
    """The comment at the top of a file: the run and its decision, notes, and the place of every knob."""
    chosen = f"Chosen by MLCD in run {deployment.run} ({deployment.source}): {deployment.sentence}"
    return "".join(f"# {line}\n" for line in (chosen, *deployment.notes(to), *placed))


def readme(deployment: Deployment, placed: tuple[PlacedKnob, ...], to: str, at: str, start: str, *more: str) -> str:
    """The README: how to use the folder, and what is not in it. `at`: where the model's file goes."""
    model = f"The model's file{'' if deployment.as_it_is else ', at the precision that was chosen,'} belongs at `{at}`."
    if "int8" in deployment.settings.values():
        model += f" MLCD's own server makes it with `{QUANTISE.format(at)}`."
    parts = [
        f"# {deployment.name}, as MLCD chose it",
        f"Run {deployment.run}: {deployment.sentence}.",
        "\n".join(f"- {note}." for note in deployment.notes(to)),
        f"The figures are {deployment.source}. They differ on another machine: run a load test there.",
        model,
        *more,
        f"Start it with `{start}`.",
        "\n".join(["The place of every knob:", "", *(f"- {each}" for each in placed)]),
    ]
    return "\n\n".join(parts) + "\n"
