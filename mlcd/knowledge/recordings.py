"""Folders of recorded load tests: what may vary there, what it costs, and what every model did.

points.csv        one GPU, cut by multiprocessors: rate and memory by precision, share and batch; host.csv beside it
latency.csv       whole machines: latency by instance type and batch; price.csv beside it
load_tests.csv    language models: tokens a second and latencies by GPU type, count and users
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from mlcd.configuration import ProbeTime, Space, serving_space
from mlcd.errors import RecordingError
from mlcd.knobs import Knobs, KnobTable
from mlcd.seen import Anatomy, Cell, Kind, Knowledge, SeenModel
from mlcd.service import Counted, Figure, ModelFacts, Operator, Profile

TRIAL = ProbeTime(120.0, 0.0)
"""How long a recorded load test took, or would have."""
CORES, MEMORY_GB = (1, 2, 3, 4, 5), (0.5, 1, 2, 4, 8, 16)
USD_PER_CORE, USD_PER_GPU, USD_PER_GB = 0.05, 4.00, 0.02
IMAGES = {"inception": "image299", "efficientnet": "image380", "yolo": "image416"}

Row = dict[str, str]


@dataclass(frozen=True)
class ServingFolder:
    """Everything that was recorded. `tables`: what may vary, by model; the same for all but where machines differ."""

    name: str
    knowledge: Knowledge
    tables: Mapping[str, KnobTable]
    counted: Counted = Counted.REQUESTS

    @property
    def models(self) -> tuple[str, ...]:
        """Their names, in order."""
        return tuple(model.facts.name for model in self.knowledge.models)

    def model(self, name: str) -> SeenModel:
        """One of them."""
        return next(model for model in self.knowledge.models if model.facts.name == name)

    def space(self, name: str) -> Space:
        """Every configuration that a search for this model may try, whether it ran there or not."""
        return serving_space(self.tables[name], TRIAL)


def read_folder(folder: Path) -> ServingFolder:
    """The recordings of a folder, whichever kind it holds."""
    kinds: dict[str, Callable[[Path], ServingFolder]] = {
        "points.csv": _read_device,
        "latency.csv": _read_instances,
        "load_tests.csv": _read_language,
    }
    for name, read in kinds.items():
        if (folder / name).is_file():
            try:
                return read(folder)
            except (KeyError, ValueError) as error:
                raise RecordingError(f"{folder / name}: not as expected: {error}") from error
    raise RecordingError(f"{folder}: no recorded load tests: expected {', '.join(kinds)}")


def _rows(path: Path) -> list[Row]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _by_model(rows: list[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[row["model"]].append(row)
    return found


def _read_device(folder: Path) -> ServingFolder:
    points, operators = _rows(folder / "points.csv"), folder / "operators.csv"
    profiles = _profiles(_rows(operators)) if operators.is_file() else {}
    models = []
    for name, rows in _by_model(points).items():
        family = rows[0]["family"]
        cells: dict[Knobs, Cell] = {
            (
                ("precision", row["precision"]),
                ("sm_share", int(row["sm_share"])),
                ("batch", int(row["batch"])),
            ): _even(float(row["rps"]), int(row["batch"]) / float(row["rps"]), float(row["peak_mb"]) / 1_024)
            for row in rows
        }
        weights = float(rows[0]["weights_mb"])
        facts = ModelFacts(name, family, inputs_of(name, family), weights, profiles=profiles.get(name, ()))
        models.append(SeenModel(facts, cells))
    hosts: dict[str, dict[float, float]] = defaultdict(dict)
    for row in _rows(folder / "host.csv"):
        hosts[row["input"]][float(row["cpu_cores"])] = float(row["requests_per_s"])
    anatomy = Anatomy(("precision", "sm_share", "batch"), host="cpu_cores", memory="memory_gb")
    table = KnobTable(
        {
            "precision": tuple(sorted({row["precision"] for row in points}, reverse=True)),
            "sm_share": tuple(sorted({int(row["sm_share"]) for row in points})),
            "batch": tuple(sorted({int(row["batch"]) for row in points})),
            "cpu_cores": CORES,
            "memory_gb": MEMORY_GB,
        },
        {"cpu_cores": USD_PER_CORE, "sm_share": USD_PER_GPU / 100, "memory_gb": USD_PER_GB},
        cores="cpu_cores",
        memory="memory_gb",
    )
    knowledge = Knowledge(Kind.DEVICE, anatomy, tuple(models), dict(hosts), source=str(folder))
    return ServingFolder(folder.name, knowledge, {model.facts.name: table for model in models})


def inputs_of(name: str, family: str) -> str:
    """The kind of a model's input, by the rule of the recording."""
    if family == "cnn" or name.startswith("vit"):
        return next((kind for start, kind in IMAGES.items() if name.startswith(start)), "image224")
    return "tokens128" if family == "transformer" else "tokens50"


def _even(rate: float, latency_s: float, peak_gb: float | None = None) -> Cell:
    """A cell whose every request takes the same time."""
    return Cell(rate, dict.fromkeys((Figure.P50, Figure.P95, Figure.P99), latency_s), peak_gb)


def _profiles(rows: list[Row]) -> dict[str, tuple[Profile, ...]]:
    passes: dict[tuple[str, str, int], list[Operator]] = defaultdict(list)
    for row in rows:
        operator = Operator(
            row["operator"], int(row["calls"]), float(row["self_device_us"]) / 1e6, float(row["device_mem_mb"])
        )
        passes[row["model"], row["precision"], int(row["batch"])].append(operator)
    found: dict[str, list[Profile]] = defaultdict(list)
    for (model, precision, batch), operators in passes.items():
        found[model].append(Profile(batch, tuple(operators), precision))
    return {model: tuple(profiles) for model, profiles in found.items()}


def _read_instances(folder: Path) -> ServingFolder:
    prices = {row["instance_type"]: float(row["usd_per_hour"]) for row in _rows(folder / "price.csv")}
    models, tables = [], {}
    for name, rows in _by_model(_rows(folder / "latency.csv")).items():
        cells: dict[Knobs, Cell] = {}
        for row in rows:
            batch, mean_s = int(row["batch_size"]), float(row["mean_ms"]) / 1_000
            figures = {figure: float(row[f"{figure}_ms"]) / 1_000 for figure in (Figure.P50, Figure.P95, Figure.P99)}
            cells[("instance_type", row["instance_type"]), ("batch", batch)] = Cell(batch / mean_s, figures)
        models.append(SeenModel(ModelFacts(name), cells))
        types = tuple(sorted({row["instance_type"] for row in rows}))
        batches = tuple(sorted({int(row["batch_size"]) for row in rows}))
        tables[name] = KnobTable(
            {"instance_type": types, "batch": batches}, {"instance_type": {each: prices[each] for each in types}}
        )
    anatomy = Anatomy(("instance_type", "batch"))
    # EC2 names say it: families that begin with g or p carry a GPU.
    numbers = {each: {"accelerators": float(each[0] in "gp")} for each in prices}
    knowledge = Knowledge(
        Kind.INSTANCES, anatomy, tuple(models), resources={"instance_type": numbers}, source=str(folder)
    )
    return ServingFolder(folder.name, knowledge, tables)


def _read_language(folder: Path) -> ServingFolder:
    tests = _rows(folder / "load_tests.csv")
    parameters = {row["model"]: float(row["model_n_parameters"]) for row in _rows(folder / "llm_features.csv")}
    models, prices = [], {}
    for name, rows in _by_model(tests).items():
        cells: dict[Knobs, Cell] = {}
        for row in rows:
            gpus = f"{row['n_gpus']} x {row['gpu_type']}"
            prices[gpus] = float(row["price_usd_per_hour"])
            figures = {figure: float(row[f"{figure}_ms"]) / 1_000 for figure in _LANGUAGE_FIGURES}
            figures |= {each: float(row[f"e2e_{each}_ms"]) / 1_000 for each in (Figure.P50, Figure.P95)}
            knobs = (("gpus", gpus), ("users", int(row["num_users"])))
            cells[knobs] = Cell(float(row["throughput_tok_per_s"]), figures)
        models.append(SeenModel(ModelFacts(name, parameters=parameters.get(name)), cells))
    users = tuple(sorted({int(row["num_users"]) for row in tests}))
    table = KnobTable({"gpus": tuple(sorted(prices)), "users": users}, {"gpus": prices})
    numbers = {
        row["gpu"]: {
            "count": float(row["gpu_n_gpus"]),
            "memory_gb": float(row["gpu_memory_capacity_gb_total"]),
            "bandwidth_gb_s": float(row["gpu_memory_bandwidth"]),
            "tflops": max(float(row[key]) for key in row if key.startswith("gpu_tflops")),
        }
        for row in _rows(folder / "gpu_features.csv")
    }
    knowledge = Knowledge(
        Kind.LANGUAGE,
        Anatomy(("gpus", "users")),
        tuple(models),
        resources={"gpus": {gpus: numbers[gpus] for gpus in prices if gpus in numbers}},
        source=str(folder),
    )
    return ServingFolder(folder.name, knowledge, {model.facts.name: table for model in models}, Counted.TOKENS)


_LANGUAGE_FIGURES = (Figure.TTFT_P50, Figure.TTFT_P95, Figure.ITL_P50, Figure.ITL_P95)
