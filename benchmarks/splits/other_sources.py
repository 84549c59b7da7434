"""Recordings converted to another kind of source, and knowledge that is wrong on purpose."""

from __future__ import annotations

import csv
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mlcd.core.configuration import ProbeTime, Space
from mlcd.planners.serve.known_models import Anatomy, Cell, Kind, Knowledge, SeenModel
from mlcd.planners.serve.model_facts import ModelFacts
from mlcd.planners.serve.nouns import Figure, Knob, KnobTable, knobs_of
from mlcd.planners.serve.space import serving_space

TRIAL = ProbeTime(120.0, 0.0)
FIGURES = (Figure.P50, Figure.P95, Figure.P99)
WORKLOADS = (("1024", "1024"), ("8192", "1024"))
"""Input and output tokens of a request: the most common ones in the tests."""


@dataclass(frozen=True)
class Source:
    """Measured models, and the search space of each."""

    knowledge: Knowledge
    spaces: Mapping[str, Space]


def even(model: SeenModel) -> SeenModel:
    """Latency as batch over rate, as in the H200's recording."""
    cells = {knobs: _cell(float(dict(knobs)["batch"]), cell.rate, cell.peak_gb) for knobs, cell in model.cells.items()}
    return replace(model, cells=cells)


def as_machines(models: Sequence[SeenModel], amount: str, usd: Callable[[float], float]) -> Source:
    """Shares of a device as machine types: one for each precision and amount ('bf16-25')."""
    found = []
    for model in models:
        cells = {}
        for knobs, cell in model.cells.items():
            setting = dict(knobs)
            name, batch = f"{setting['precision']}-{setting[amount]}", setting["batch"]
            cells[("instance_type", name), ("batch", batch)] = _cell(float(batch), cell.rate)
        found.append(SeenModel(ModelFacts(model.facts.name), cells))
    types = tuple(sorted({str(knobs[0][1]) for model in found for knobs in model.cells}))
    batches: tuple[Knob, ...] = tuple(sorted({knobs[1][1] for model in found for knobs in model.cells}))
    prices = {name: usd(float(name.split("-")[1])) for name in types}
    space = serving_space(KnobTable({"instance_type": types, "batch": batches}, {"instance_type": prices}), TRIAL)
    numbers = {"instance_type": {name: {"accelerators": 0.0} for name in types}}
    knowledge = Knowledge(Kind.INSTANCES, Anatomy(("instance_type", "batch")), tuple(found), resources=numbers)
    return Source(knowledge, dict.fromkeys((model.facts.name for model in found), space))


def as_cuts(models: Sequence[SeenModel], threads: int) -> list[SeenModel]:
    """Models on a CPU as if its threads were shares of a GPU."""
    found = []
    for model in models:
        cells = {}
        for knobs, cell in model.cells.items():
            setting = dict(knobs)
            share = ("sm_share", 100 * int(setting["threads"]) // threads)
            cells[("precision", setting["precision"]), share, ("batch", setting["batch"])] = cell
        found.append(replace(model, cells=cells))
    return found


@dataclass(frozen=True)
class Elsewhere:
    """How another source differs. `named`: factors on the models' stated sizes.

    `kinds`: factors on the speeds of the kinds of GPU over their published figures. `sharing`: tokens a
    second grow with the users to this power more, and each user waits so much less.
    """

    named: tuple[float, ...] = (1.0,)
    memory: float = 1.0
    users: int = 1
    faster: float = 1.0
    kinds: tuple[float, ...] = (1.0,)
    sharing: float = 0.0


def elsewhere(source: Source, how: Elsewhere) -> Source:
    """Load tests as if by another source: other GPUs, wrong sizes, more users, other speeds."""

    def renamed(machine: Knob) -> str:
        return str(machine).replace(" x ", " x New ")

    kinds = sorted({str(machine).split(" x ")[-1] for machine in source.knowledge.resources["gpus"]})

    def times(setting: Mapping[str, Knob]) -> float:
        kind = kinds.index(str(setting["gpus"]).split(" x ")[-1])
        return how.faster * how.kinds[kind % len(how.kinds)] * float(setting["users"]) ** how.sharing

    models, spaces = [], {}
    for place, model in enumerate(source.knowledge.models):
        cells, name = {}, model.facts.name
        for knobs, cell in model.cells.items():
            setting = dict(knobs)
            figures = {figure: s / times(setting) for figure, s in cell.figures.items()}
            where = ("gpus", renamed(setting["gpus"])), ("users", how.users * int(setting["users"]))
            cells[where] = Cell(cell.rate * how.users * times(setting), figures)
        size = (model.facts.parameters or 1.0) * how.named[place % len(how.named)]
        models.append(SeenModel(replace(model.facts, parameters=size), cells))
        tried = [(dict(knobs_of(each)), each.usd_per_hour) for each in source.spaces[name].configurations]
        usd = {renamed(setting["gpus"]): dollars for setting, dollars in tried}
        users: tuple[Knob, ...] = tuple(sorted({how.users * int(setting["users"]) for setting, _ in tried}))
        spaces[name] = serving_space(KnobTable({"gpus": tuple(sorted(usd)), "users": users}, {"gpus": usd}), TRIAL)
    numbers = {
        renamed(machine): {**told, "memory_gb": how.memory * told["memory_gb"]}
        for machine, told in source.knowledge.resources["gpus"].items()
    }
    return Source(replace(source.knowledge, models=tuple(models), resources={"gpus": numbers}), spaces)


def silicon(folder: Path) -> Source:
    """llm_silicon as load tests of GPUs by the number: the best engine and precision of each, servers that do both."""
    systems, sizes = _by(folder / "systems.csv", "system"), _by(folder / "models.csv", "model")
    best: dict[str, dict[tuple[str, int], dict[str, str]]] = {}
    with (folder / "points.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["mode"] != "agg" or row["latest"] != "1" or (row["isl"], row["osl"]) not in WORKLOADS:
                continue
            tests = best.setdefault(f"{row['model']} {row['isl']}/{row['osl']}", {})
            key = f"{row['gpus']} x {row['system']}", int(row["concurrency"])
            rate = float(row["tokens_per_s_per_gpu"])
            if key not in tests or rate > float(tests[key]["tokens_per_s_per_gpu"]):
                tests[key] = row
    models, spaces, numbers = [], {}, {}
    for name, tests in best.items():
        cells, usd = {}, {}
        for (machine, users), row in tests.items():
            count, seconds = int(row["gpus"]), {"ttft": float(row["ttft_ms"]) / 1e3, "itl": float(row["tpot_ms"]) / 1e3}
            figures = {Figure.TTFT_P95: seconds["ttft"], Figure.ITL_P95: seconds["itl"]}
            cells[("gpus", machine), ("users", users)] = Cell(float(row["tokens_per_s_per_gpu"]) * count, figures)
            usd[machine], told = float(row["usd_per_hour"]) * count, systems[row["system"]]
            numbers[machine] = {
                "count": float(count),
                "memory_gb": float(told["memory_gb"]) * count,
                "bandwidth_gb_s": float(told["bandwidth_tb_s"]) * 1e3,
            }
        parameters = float(sizes[name.split(" ")[0]]["params_b"])
        models.append(SeenModel(ModelFacts(name, parameters=parameters), cells))
        users_: tuple[Knob, ...] = tuple(sorted({users for _, users in tests}))
        table = KnobTable({"gpus": tuple(sorted(usd)), "users": users_}, {"gpus": usd})
        spaces[name] = serving_space(table, TRIAL)
    anatomy = Anatomy(("gpus", "users"))
    return Source(Knowledge(Kind.LANGUAGE, anatomy, tuple(models), resources={"gpus": numbers}), spaces)


def mixed_up(knowledge: Knowledge, seed: int = 0) -> Knowledge:
    """Wrong knowledge: every known model's results are assigned to other configurations."""
    lot, found = random.Random(seed), []
    for model in knowledge.models:
        cells = list(model.cells.values())
        lot.shuffle(cells)
        found.append(replace(model, cells=dict(zip(model.cells, cells, strict=True))))
    return replace(knowledge, models=tuple(found))


def slower(knowledge: Knowledge, times: float) -> Knowledge:
    """Knowledge as if measured on a machine so many times slower."""
    found = []
    for model in knowledge.models:
        cells = {
            knobs: Cell(cell.rate / times, {f: s * times for f, s in cell.figures.items()}, cell.peak_gb)
            for knobs, cell in model.cells.items()
        }
        found.append(replace(model, cells=cells))
    return replace(knowledge, models=tuple(found))


def on_other_machines(knowledge: Knowledge, machines: Sequence[str]) -> Knowledge:
    """Knowledge without any result on these machines."""
    name = knowledge.anatomy.cell[0]
    found = []
    for model in knowledge.models:
        cells = {knobs: cell for knobs, cell in model.cells.items() if dict(knobs)[name] not in machines}
        found.append(replace(model, cells=cells))
    return replace(knowledge, models=tuple(found))


def _cell(batch: float, rate: float, peak_gb: float | None = None) -> Cell:
    return Cell(rate, dict.fromkeys(FIGURES, batch / rate), peak_gb)


def _by(path: Path, column: str) -> dict[str, dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return {row[column]: row for row in csv.DictReader(file)}
