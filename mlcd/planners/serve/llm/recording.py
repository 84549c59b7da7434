"""A folder of recorded load tests of language-model deployments.

points.csv        one load test per row: model, request lengths, deployment, concurrency, TTFT and TPOT
models.csv        the architecture of each model
systems.csv       the datasheet of each GPU

Requests of other lengths are another workload of a model. Each workload has its own deployments, and only measured ones
can be chosen: the space is a list, not a product of knobs. The files do not state which statistic TTFT and TPOT are;
they are taken for medians.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from mlcd.catalog.gpus import numbers_of
from mlcd.core.configuration import Choice, Offer, ProbeTime, Space
from mlcd.core.csv_table import Line
from mlcd.core.errors import RecordingError, UnknownName
from mlcd.planners.modeling.architecture import MXFP4_BITS, Architecture
from mlcd.planners.serve.known_models import Anatomy, Cell, Kind, Knowledge, SeenModel, read_lines
from mlcd.planners.serve.llm.deployment import SWEEP
from mlcd.planners.serve.llm.nouns import Engine, LanguageModel, Prompts
from mlcd.planners.serve.model_facts import ModelFacts
from mlcd.planners.serve.nouns import Counted, Figure, Knob, Knobs, ServerSettings

POINTS, MODELS, SYSTEMS = "points.csv", "models.csv", "systems.csv"
CONCURRENCY = "concurrency"
WORDS = ("engine", "precision", "mode")
PARALLELISM = ("tp", "dp", "ep", "decode_workers", "prefill_workers", "prefill_tp", "prefill_dp", "prefill_ep")
COUNTS = ("gpus", *PARALLELISM, CONCURRENCY)
KNOBS = ("gpu", *WORDS, *COUNTS)
"""Every knob of a recorded deployment, in order."""
FIGURES = ("ttft_ms", "tpot_ms", "tokens_per_s_per_gpu", "usd_per_hour")
COLUMNS = ("model", "isl", "osl", "system", *WORDS, *COUNTS, *FIGURES, "latest")
SIZES = tuple(each.name for each in fields(Architecture) if each.name != "expert_bits")
FOUR_BIT_MODELS = ("gpt-oss",)
"""Models whose experts have 4 bits, whatever precision a row states."""
TRIAL = ProbeTime(600.0, 0.0)
"""The duration of a recorded trial, most of which is loading the model."""


@dataclass(frozen=True)
class EngineFolder:
    """A recording of engines. A model's workloads are SeenModels of the same name with different prompts.

    `prices`: dollars an hour of each deployment, by workload title and knobs.
    """

    name: str
    knowledge: Knowledge
    prices: Mapping[str, Mapping[Knobs, float]]
    counted: Counted = Counted.TOKENS

    @property
    def models(self) -> tuple[str, ...]:
        """The models' names, in order."""
        return tuple(dict.fromkeys(model.facts.name for model in self.knowledge.models))

    def workloads(self, name: str) -> list[SeenModel]:
        """The workloads of a model."""
        found = [model for model in self.knowledge.models if model.facts.name == name]
        if not found:
            raise UnknownName("recorded model", name, self.models)
        return found

    def model(self, written: str) -> SeenModel:
        """A workload by its title ('Llama-3.1-8B@1024/128'), or by the model's name if it has only one."""
        titles = {model.facts.title: model for model in self.knowledge.models}
        if written in titles:
            return titles[written]
        name = written.partition("@")[0]
        found = self.workloads(name)
        if written == name and len(found) == 1:
            return found[0]
        listed = ", ".join(model.facts.title for model in found)
        raise RecordingError(f"{name} was measured with requests of several lengths: name one of {listed}")

    def space(self, written: str) -> Space:
        """The measured deployments of a workload."""
        model = self.model(written)
        prices = self.prices[model.facts.title]
        settings: dict[Offer, list[ServerSettings]] = defaultdict(list)
        for knobs, cell in model.cells.items():
            settings[_offer(dict(knobs), prices[knobs])].append(_settings(knobs, cell))
        return Space(tuple(Choice(offer, settings=tuple(each)) for offer, each in settings.items()), TRIAL)

    def swept(self) -> EngineFolder:
        """The recording with one trial per deployment, which measures all its concurrencies (the knob `sweep`)."""
        anatomy = Anatomy(tuple(name for name in KNOBS if name != CONCURRENCY))
        models = tuple(SeenModel(model.facts, _swept(model.cells)) for model in self.knowledge.models)
        prices = {
            title: {_without(knobs, CONCURRENCY): usd for knobs, usd in each.items()}
            for title, each in self.prices.items()
        }
        return replace(self, knowledge=replace(self.knowledge, anatomy=anatomy, models=models), prices=prices)


def _swept(cells: Mapping[Knobs, Cell]) -> dict[Knobs, Cell]:
    levels: dict[Knobs, dict[int, Cell]] = defaultdict(dict)
    for knobs, cell in cells.items():
        levels[_without(knobs, CONCURRENCY)][int(dict(knobs)[CONCURRENCY])] = cell
    best = {knobs: max(each.values(), key=lambda cell: cell.rate) for knobs, each in levels.items()}
    return {knobs: replace(best[knobs], levels=dict(sorted(each.items()))) for knobs, each in levels.items()}


def load_tests(model: SeenModel) -> Iterator[tuple[Knobs, Cell]]:
    """Every load test of a workload, with `concurrency` among its knobs, whether it was swept or not."""
    for knobs, cell in model.cells.items():
        if not cell.levels:
            yield knobs, cell
        for concurrency, level in cell.levels.items():
            yield (*knobs, (CONCURRENCY, concurrency)), level


def _without(knobs: Knobs, name: str) -> Knobs:
    return tuple(knob for knob in knobs if knob[0] != name)


def _settings(knobs: Knobs, cell: Cell) -> ServerSettings:
    sweep = ((SWEEP, " ".join(map(str, cell.levels))),) if cell.levels else ()
    return ServerSettings((*knobs, *sweep))


def _offer(knobs: Mapping[str, Knob], usd_per_hour: float) -> Offer:
    gpu, gpus = str(knobs["gpu"]), int(knobs["gpus"])
    return Offer(f"{gpus} x {gpu}", usd_per_hour, vcpus=1.0, memory_gb=1.0, accelerator=gpu, accelerators=gpus)


def language_model(facts: ModelFacts) -> LanguageModel | None:
    """The language-model part of serving a recorded model; None without architecture and prompts."""
    if facts.architecture is None or facts.prompts is None:
        return None
    return LanguageModel(Engine(), facts.architecture, facts.prompts)


def is_of_engines(folder: Path) -> bool:
    """Whether points.csv of a folder holds deployments of language models."""
    with (folder / POINTS).open(encoding="utf-8-sig", errors="replace") as file:
        return {"isl", "osl", "tpot_ms"} <= {cell.strip() for cell in file.readline().split(",")}


def read_engines(folder: Path) -> EngineFolder:
    """Read such a folder. RecordingError says what is wrong, and where."""
    sizes = {line.text("model"): _architecture(line) for line in _lines(folder / MODELS, ("model", *SIZES))}
    systems = {line.text("system"): _system(line) for line in _lines(folder / SYSTEMS, ("system", "memory_gb"))}
    facts: dict[str, ModelFacts] = {}
    cells: dict[str, dict[Knobs, Cell]] = defaultdict(dict)
    prices: dict[str, dict[Knobs, float]] = defaultdict(dict)
    for row, line in enumerate(_lines(folder / POINTS, COLUMNS), start=1):
        model, knobs = _facts(line, sizes), _knobs(line, systems)
        if line.cells["latest"] != "1":
            continue
        if knobs in cells[model.title]:
            raise line.error(
                f"{model.title} is already measured with these settings; set latest to 0 in one of the rows"
            )
        facts[model.title] = model
        cells[model.title][knobs] = _cell(line, row)
        prices[model.title][knobs] = line.number("usd_per_hour", above_zero=True) * line.count("gpus")
    models = tuple(SeenModel(model, cells[title]) for title, model in facts.items())
    knowledge = Knowledge(Kind.ENGINES, Anatomy(KNOBS), models, resources={"gpu": systems}, source=str(folder))
    return EngineFolder(folder.name, knowledge, prices)


def _lines(path: Path, columns: tuple[str, ...]) -> list[Line]:
    if not path.is_file():
        raise RecordingError(f"{path}: no such file; the load tests in this folder need it")
    return read_lines(path, columns)


def _architecture(line: Line) -> Architecture:
    numbers: dict[str, Any] = {name: line.count(name) for name in SIZES if not name.endswith("_b")}
    total, active = (line.number(name, above_zero=True) for name in ("params_b", "active_b"))
    sizes = Architecture(total, active, **numbers)
    return replace(sizes, expert_bits=MXFP4_BITS) if line.text("model").startswith(FOUR_BIT_MODELS) else sizes


def _system(line: Line) -> dict[str, float]:
    """The datasheet of a GPU, under the column names of `gpus.csv`."""
    numbers = numbers_of(line)
    if "bandwidth_tb_s" in line.cells:
        numbers["bandwidth_gb_s"] = 1_000 * line.number("bandwidth_tb_s", above_zero=True)
    return numbers


def _facts(line: Line, sizes: Mapping[str, Architecture]) -> ModelFacts:
    name = line.text("model")
    if name not in sizes:
        raise line.error(f"{name} has no sizes; add it to {MODELS}")
    prompts = Prompts(line.count("isl"), line.count("osl"))
    return ModelFacts(name, parameters=sizes[name].params_b, architecture=sizes[name], prompts=prompts)


def _knobs(line: Line, systems: Mapping[str, Mapping[str, float]]) -> Knobs:
    system = line.text("system")
    if system not in systems:
        raise line.error(f"{system} has no numbers; add it to {SYSTEMS}")
    words = tuple((name, line.text(name)) for name in WORDS)
    return (("gpu", system), *words, *((name, line.count(name)) for name in COUNTS))


def _cell(line: Line, row: int) -> Cell:
    figures = {
        Figure.TTFT_P50: line.number("ttft_ms", above_zero=True) / 1_000,
        Figure.TPOT_P50: line.number("tpot_ms", above_zero=True) / 1_000,
    }
    return Cell(line.number("tokens_per_s_per_gpu", above_zero=True) * line.count("gpus"), figures, row=row)
