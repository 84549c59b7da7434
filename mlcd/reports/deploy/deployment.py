"""What is deployed: the chosen configuration, knob by knob, each with the part that it plays in a server; its files.

A number that a target's field cannot hold exactly has no part: it is placed beside the file, never rounded.
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
from mlcd.reports.serve.words import decision_sentence

LANGUAGE = {Figure.TTFT_P50, Figure.TTFT_P95, Figure.ITL_P50, Figure.ITL_P95}


class Part(Enum):
    """What a knob sets, and the names of such knobs."""

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


OWN: Mapping[str, Knob] = {"threads": 1, "batch": 1, "max_wait_ms": 5.0}
"""How MLCD's own server is set where no knob says so: what was measured is deployed. A test compares them."""


@dataclass(frozen=True, slots=True)
class PlacedKnob:
    """A knob, and where it went in a target's files; without a `where` it is not in them: `note` says what to do."""

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
    """The chosen configuration of a run. `name` is one that folders and clusters accept."""

    run: str
    name: str
    sentence: str
    source: str
    path: str
    knobs: Knobs
    own: Mapping[str, Knob] = field(default_factory=dict)

    @property
    def settings(self) -> Mapping[str, Knob]:
        """Every knob, and how the trials' server is set where no knob says so."""
        return {**self.own, **dict(self.knobs)}

    def number(self, part: Part) -> float | None:
        """How the first knob of this part is set, if it is one that a file can hold exactly."""
        name = self.name_of(part)
        return holds(part, self.settings[name]) if name is not None else None

    def whole(self, part: Part) -> int | None:
        """The same of a knob that counts."""
        number = self.number(part)
        return None if number is None else int(number)

    @property
    def cores(self) -> float | None:
        """Cores of its machine; a server on the CPU that is placed only its threads was pinned to as many."""
        stated = self.number(Part.CORES)
        return self.number(Part.THREADS) if stated is None and not self.on_gpu else stated

    def name_of(self, part: Part) -> str | None:
        """The knob that plays this part."""
        return next((name for name in self.settings if part_of(name) is part), None)

    @property
    def on_gpu(self) -> bool:
        """Whether it was served by a GPU, or a share of one."""
        return any(self.name_of(part) is not None for part in (Part.SHARE, Part.GPUS))

    @property
    def as_it_is(self) -> bool:
        """Whether the model's own file was served, not one of another precision."""
        name = self.name_of(Part.PRECISION)
        return name is None or self.settings[name] == "fp32"

    def placed(self, fields: Mapping[Part, str], notes: Mapping[Part, str]) -> tuple[PlacedKnob, ...]:
        """Where each knob went. `fields`: those of a target, by part; `notes`: what to do where it has none."""
        return tuple(self._placed(name, value, fields, notes) for name, value in self.settings.items())

    def _placed(self, name: str, value: Knob, fields: Mapping[Part, str], notes: Mapping[Part, str]) -> PlacedKnob:
        part = part_of(name)
        note = "" if name in dict(self.knobs) else "no knob of this run: so the server of its trials was set"
        if part is Part.PRECISION and value == "fp32":
            return PlacedKnob(name, value, "the model's file, as it is", note)
        if self.name_of(part) != name and part in SINGLE:
            return PlacedKnob(name, value, note=f"{self.name_of(part)} is the knob that sets this")
        if holds(part, value) is None or part not in fields:
            return PlacedKnob(name, value, note=notes.get(part, "nothing here is set by it; set it where it belongs"))
        return PlacedKnob(name, value, fields[part], note)


SINGLE = frozenset(Part) - {Part.OTHER, Part.LOAD, Part.PRECISION}
"""Parts of which there is one."""


def part_of(name: str) -> Part:
    """What a knob of this name sets."""
    return next((part for part in Part if name in part.value), Part.OTHER)


def holds(part: Part, value: Knob) -> float | None:
    """The number, if the fields of this part hold it exactly; None if they do not, or if it is no number."""
    if part not in SINGLE or isinstance(value, str | bool) or not math.isfinite(value):
        return None
    number = float(value)
    if part is Part.SHARE:
        return number if 0 < number <= 100 else None
    steps = {Part.WAIT: 1e3, Part.CORES: 1e3, Part.MEMORY: 1e9}.get(part, 1.0)  # microseconds, milli-cores, bytes
    least = 0.0 if part is Part.WAIT else 1 / steps
    return number if least <= number < 2**31 and round(number * steps) / steps == number else None


def deployment_of(run: str, account: Account) -> Deployment:
    """What a run has chosen to deploy; WrongState if it is none, or nothing that these targets serve."""
    job, decision = account.job, account.decision
    if not isinstance(job.ask, ServingTask):
        raise WrongState(f"run '{run}' trains a job: export it with --to skypilot")
    if decision is None or decision.configuration is None:
        raise WrongState(f"run '{run}' has chosen no configuration; there is nothing to export")
    service, place = service_of(job), decision.configuration
    if _speaks(service, account):
        raise WrongState(f"run '{run}' serves a language model, not an ONNX file; see its knobs with: mlcd show {run}")
    own = OWN if service.endpoint is None and service.path else {}
    return Deployment(
        run,
        slug(service.model.name),
        line(decision_sentence(decision, job, account.searched)),
        _source(service, account),
        service.file,
        knobs_of(place),
        {name: value for name, value in own.items() if part_of(name) not in {part_of(k) for k, _ in knobs_of(place)}},
    )


def slug(name: str) -> str:
    """A name that a folder, a cluster and a server accept: small letters, digits and dashes, a letter first."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:50].strip("-")
    return plain if re.match(r"[a-z]", plain) else f"model-{plain}".strip("-")


def line(words: str) -> str:
    """Words of the user on one line, safe behind a '#'."""
    return " ".join("".join(c if c.isprintable() else " " for c in words).split())


def _source(service: ServingTask, account: Account) -> str:
    if service.endpoint is not None:
        return line(f"{account.provenance}, of the server at {service.endpoint.url}")
    return f"{account.provenance}, of MLCD's own server" if service.path else str(account.provenance)


def _speaks(service: ServingTask, account: Account) -> bool:
    measured = {figure for m in account.searched.good for figure in served_by(m).figures}
    figures = measured | {cap.figure for cap in service.caps}
    return service.counted is Counted.TOKENS or bool(figures & LANGUAGE)


MODEL = "1/model.onnx"
"""Where Triton looks for the first version of a model, in its folder."""
QUANTISE = (
    "python -c \"from onnxruntime.quantization import *; quantize_dynamic('MODEL', '{}', weight_type=QuantType.QInt8)\""
)


@dataclass(frozen=True)
class Export:
    """`files`: by their path in the folder. `main`: the one to show alone. `model_at`: where the model's file goes.
    `start`: the command that uses the folder.
    """

    files: Mapping[str, str]
    main: str
    knobs: tuple[PlacedKnob, ...]
    model_at: str
    start: str

    @property
    def missing(self) -> tuple[PlacedKnob, ...]:
        """The knobs that are not in the files."""
        return tuple(each for each in self.knobs if not each.where)


def header(deployment: Deployment, placed: tuple[PlacedKnob, ...]) -> str:
    """Comments: what was chosen by which run, and where every knob went."""
    chosen = f"Chosen by MLCD in run {deployment.run} ({deployment.source}): {deployment.sentence}"
    return "".join(f"# {line}\n" for line in (chosen, *placed))


def readme(deployment: Deployment, placed: tuple[PlacedKnob, ...], folder: str, start: str, *more: str) -> str:
    """How to use the folder, and what is not in it."""
    at = f"{folder}/{MODEL}"
    model = f"The model's file{'' if deployment.as_it_is else ', at the precision that was chosen,'} belongs at `{at}`."
    if "int8" in deployment.settings.values():
        model += f" MLCD's own server makes it with `{QUANTISE.format(at)}`."
    parts = [
        f"# {deployment.name}, as MLCD chose it",
        f"Run {deployment.run}: {deployment.sentence}.",
        f"These figures are {deployment.source}. Another server, or another machine, has its own: load it before you "
        "count on them. A limit on memory is that of the trial: a server that is ended for want of it needs more.",
        model,
        *more,
        f"Start it with `{start}`.",
        "\n".join(["Every knob, and where it went:", "", *(f"- {each}" for each in placed)]),
    ]
    return "\n\n".join(parts) + "\n"
