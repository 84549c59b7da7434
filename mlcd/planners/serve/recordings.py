"""Folders of recorded load tests: the knobs, their prices, and the results of every model.

points.csv        one partitioned GPU: rate and memory by precision, share of multiprocessors and batch; with host.csv
latency.csv       instance types: latency by type and batch; with price.csv
load_tests.csv    language models: tokens a second and latencies by GPU type, number of GPUs and users

A points.csv of language-model deployments is another format: `llm/recording.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, nan
from pathlib import Path
from typing import Protocol

from mlcd.core.configuration import ProbeTime, Space
from mlcd.core.csv_table import Line
from mlcd.core.errors import RecordingError, UnknownName
from mlcd.planners.serve.known_models import Anatomy, Cell, Kind, Knowledge, SeenModel, by_model, read_lines
from mlcd.planners.serve.llm.recording import is_of_engines, read_engines
from mlcd.planners.serve.model_facts import ModelFacts, Operator, Profile
from mlcd.planners.serve.nouns import Counted, Figure, Knobs, KnobTable
from mlcd.planners.serve.space import serving_space

TRIAL = ProbeTime(120.0, 0.0)
"""The duration of a recorded trial."""
CORES, MEMORY_GB = (1, 2, 3, 4, 5), (0.5, 1, 2, 4, 8, 16)
USD_PER_CORE, USD_PER_GPU, USD_PER_GB = 0.05, 4.00, 0.02
IMAGES = {"inception": "image299", "efficientnet": "image380", "yolo": "image416"}
IMAGE_TRANSFORMERS = ("vit", "swin", "deit", "beit")
"""Parts of model names, used for models without a profile."""

POINTS = ("model", "family", "precision", "sm_share", "batch", "rps", "peak_mb", "weights_mb")
OPERATORS = ("model", "precision", "batch", "operator", "calls", "self_device_us", "device_mem_mb")
HOSTS = ("input", "cpu_cores", "requests_per_s")
LATENCIES = ("model", "instance_type", "batch_size", "mean_ms", "p50_ms", "p95_ms", "p99_ms")
PRICES = ("instance_type", "usd_per_hour")
LANGUAGE_FIGURES = {each: f"{each}_ms" for each in Figure if each.startswith(("ttft", "itl"))}
LANGUAGE_FIGURES |= {Figure.P50: "e2e_p50_ms", Figure.P95: "e2e_p95_ms"}
LOAD_TESTS = ("model", "n_gpus", "gpu_type", "num_users", "throughput_tok_per_s", "price_usd_per_hour")
PARAMETERS = ("model", "model_n_parameters")
GPUS = ("gpu", "gpu_n_gpus", "gpu_memory_capacity_gb_total", "gpu_memory_bandwidth")


class Recording(Protocol):
    """What every kind of recording provides."""

    @property
    def name(self) -> str:
        """The folder's name."""

    @property
    def knowledge(self) -> Knowledge:
        """All measurements."""

    @property
    def counted(self) -> Counted:
        """The unit of its rates."""

    @property
    def models(self) -> tuple[str, ...]:
        """The models' names, in order."""

    def model(self, name: str) -> SeenModel:
        """The model of that name."""

    def space(self, name: str) -> Space:
        """The configurations of that model."""


@dataclass(frozen=True)
class ServingFolder:
    """A recording. `tables`: the knobs by model; they differ only if the models ran on different machines."""

    name: str
    knowledge: Knowledge
    tables: Mapping[str, KnobTable]
    counted: Counted = Counted.REQUESTS

    @property
    def models(self) -> tuple[str, ...]:
        """The models' names, in order."""
        return tuple(model.facts.name for model in self.knowledge.models)

    def model(self, name: str) -> SeenModel:
        """The model of that name."""
        if name not in self.models:
            raise UnknownName("recorded model", name, self.models)
        return self.knowledge.models[self.models.index(name)]

    def space(self, name: str) -> Space:
        """All configurations of this model, measured or not."""
        return serving_space(self.tables[name], TRIAL)


def read_folder(folder: Path) -> Recording:
    """Read a recording of any kind."""
    if (folder / "points.csv").is_file() and is_of_engines(folder):
        return read_engines(folder)
    kinds = {"points.csv": _read_device, "latency.csv": _read_instances, "load_tests.csv": _read_language}
    for name, read in kinds.items():
        if (folder / name).is_file():
            return read(folder)
    raise RecordingError(f"{folder}: no recorded load tests: expected {', '.join(kinds)}")


def _lines(path: Path, columns: tuple[str, ...], *, may_be_empty: bool = False) -> list[Line]:
    if not path.is_file():
        raise RecordingError(f"{path}: no such file; the load tests in this folder need it")
    lines = read_lines(path, columns)
    if not lines and not may_be_empty:
        raise RecordingError(f"{path}: it has no rows")
    return lines


def _positive_count(line: Line, column: str) -> int:
    if (count := line.count(column)) == 0:
        raise line.error(f"{column} '{line.cells[column]}': must be more than zero")
    return count


def _signed(line: Line, column: str) -> float:
    try:
        value = float(line.cells[column])
    except ValueError:
        value = nan
    if not isfinite(value):
        raise line.error(f"{column} '{line.cells[column]}': expected a number")
    return value


def _seconds(line: Line, column: str) -> float:
    return line.number(column, above_zero=True) / 1_000


def _by_model(lines: list[Line]) -> dict[str, list[Line]]:
    groups: dict[str, list[Line]] = defaultdict(list)
    for line in lines:
        groups[line.text("model")].append(line)
    return groups


def _read_device(folder: Path) -> ServingFolder:
    points, operators = _lines(folder / "points.csv", POINTS), folder / "operators.csv"
    profiles = _profiles(_lines(operators, OPERATORS)) if operators.is_file() else {}
    models = []
    for name, lines in _by_model(points).items():
        family, own_profiles = lines[0].cells["family"], profiles.get(name, ())
        inputs = lines[0].cells.get("inputs") or inputs_of(name, family, own_profiles)
        facts = ModelFacts(name, family, inputs, lines[0].number("weights_mb"), profiles=own_profiles)
        models.append(SeenModel(facts, dict(map(_device_cell, lines))))
    hosts: dict[str, dict[float, float]] = defaultdict(dict)
    for line in _lines(folder / "host.csv", HOSTS):
        hosts[line.text("input")][line.number("cpu_cores")] = line.number("requests_per_s", above_zero=True)
    anatomy = Anatomy(("precision", "sm_share", "batch"), host="cpu_cores", memory="memory_gb")
    table = KnobTable(
        {
            "precision": tuple(sorted({line.text("precision") for line in points}, reverse=True)),
            "sm_share": tuple(sorted({_positive_count(line, "sm_share") for line in points})),
            "batch": tuple(sorted({_positive_count(line, "batch") for line in points})),
            "cpu_cores": CORES,
            "memory_gb": MEMORY_GB,
        },
        {"cpu_cores": USD_PER_CORE, "sm_share": USD_PER_GPU / 100, "memory_gb": USD_PER_GB},
        cores="cpu_cores",
        memory="memory_gb",
    )
    knowledge = Knowledge(Kind.DEVICE, anatomy, tuple(models), dict(hosts), source=str(folder))
    return ServingFolder(folder.name, knowledge, {model.facts.name: table for model in models})


def inputs_of(name: str, family: str, profiles: Sequence[Profile] = ()) -> str:
    """Guess the kind of a model's input, if the recording has no column for it.

    A transformer that runs a convolution takes images (it cuts them into patches). Without a profile, the name decides.
    The image size follows the rule by which the recording was made.
    """
    operators = [operator.name for profile in profiles for operator in profile.operators]
    by_name = any(word in name for word in IMAGE_TRANSFORMERS)
    takes_images = any("conv" in operator for operator in operators) if profiles else by_name
    if family == "cnn" or (family == "transformer" and takes_images):
        return next((kind for start, kind in IMAGES.items() if name.startswith(start)), "image224")
    return "tokens128" if family == "transformer" else "tokens50"


def _device_cell(line: Line) -> tuple[Knobs, Cell]:
    """The knobs and results of a row. All requests of a batch take the same time, so the percentiles are equal."""
    share, batch = _positive_count(line, "sm_share"), _positive_count(line, "batch")
    rate = line.number("rps", above_zero=True)
    figures = dict.fromkeys((Figure.P50, Figure.P95, Figure.P99), batch / rate)
    knobs = (("precision", line.text("precision")), ("sm_share", share), ("batch", batch))
    return knobs, Cell(rate, figures, line.number("peak_mb") / 1_024)


def _profiles(lines: list[Line]) -> dict[str, tuple[Profile, ...]]:
    return by_model(
        (
            (line.text("model"), line.text("precision"), _positive_count(line, "batch")),
            Operator(
                line.text("operator"),
                line.count("calls"),
                line.number("self_device_us") / 1e6,
                _signed(line, "device_mem_mb"),  # an operator may free memory
            ),
        )
        for line in lines
    )


def _read_instances(folder: Path) -> ServingFolder:
    prices = {
        line.text("instance_type"): line.number("usd_per_hour", above_zero=True)
        for line in _lines(folder / "price.csv", PRICES)
    }
    models, tables = [], {}
    for name, lines in _by_model(_lines(folder / "latency.csv", LATENCIES)).items():
        cells: dict[Knobs, Cell] = {}
        for line in lines:
            if (kind := line.text("instance_type")) not in prices:
                raise line.error(f"{kind} has no price; add it to price.csv")
            batch = _positive_count(line, "batch_size")
            figures = {figure: _seconds(line, f"{figure}_ms") for figure in (Figure.P50, Figure.P95, Figure.P99)}
            cells[("instance_type", kind), ("batch", batch)] = Cell(batch / _seconds(line, "mean_ms"), figures)
        models.append(SeenModel(ModelFacts(name), cells))
        types = tuple(sorted({line.text("instance_type") for line in lines}))
        batches = tuple(sorted({_positive_count(line, "batch_size") for line in lines}))
        tables[name] = KnobTable(
            {"instance_type": types, "batch": batches}, {"instance_type": {each: prices[each] for each in types}}
        )
    anatomy = Anatomy(("instance_type", "batch"))
    # By EC2's names: families that begin with g or p have a GPU.
    numbers = {each: {"accelerators": float(each[0] in "gp")} for each in prices}
    resources = {"instance_type": numbers}
    knowledge = Knowledge(Kind.INSTANCES, anatomy, tuple(models), resources=resources, source=str(folder))
    return ServingFolder(folder.name, knowledge, tables)


def _read_language(folder: Path) -> ServingFolder:
    tests = _lines(folder / "load_tests.csv", (*LOAD_TESTS, *LANGUAGE_FIGURES.values()))
    parameters = {
        line.text("model"): line.number("model_n_parameters", above_zero=True)
        for line in _lines(folder / "llm_features.csv", PARAMETERS, may_be_empty=True)
    }
    models, prices = [], {}
    for name, lines in _by_model(tests).items():
        cells: dict[Knobs, Cell] = {}
        for line in lines:
            gpus = f"{line.text('n_gpus')} x {line.text('gpu_type')}"
            prices[gpus] = line.number("price_usd_per_hour", above_zero=True)
            figures = {figure: _seconds(line, column) for figure, column in LANGUAGE_FIGURES.items()}
            knobs = (("gpus", gpus), ("users", _positive_count(line, "num_users")))
            cells[knobs] = Cell(line.number("throughput_tok_per_s", above_zero=True), figures)
        models.append(SeenModel(ModelFacts(name, parameters=parameters.get(name)), cells))
    users = tuple(sorted({_positive_count(line, "num_users") for line in tests}))
    table = KnobTable({"gpus": tuple(sorted(prices)), "users": users}, {"gpus": prices})
    features = _lines(folder / "gpu_features.csv", GPUS, may_be_empty=True)
    numbers = {line.text("gpu"): _gpu_numbers(line) for line in features}
    resources = {"gpus": {gpus: numbers[gpus] for gpus in prices if gpus in numbers}}
    anatomy = Anatomy(("gpus", "users"))
    knowledge = Knowledge(Kind.LANGUAGE, anatomy, tuple(models), resources=resources, source=str(folder))
    return ServingFolder(folder.name, knowledge, {model.facts.name: table for model in models}, Counted.TOKENS)


def _gpu_numbers(line: Line) -> dict[str, float]:
    """The published numbers of a GPU. -1 stands for a rate that it lacks."""
    rates = [_signed(line, column) for column in line.cells if column.startswith("gpu_tflops")]
    if not rates:
        raise line.error("no column gpu_tflops...: expected at least one published rate")
    return {
        "count": line.number("gpu_n_gpus", above_zero=True),
        "memory_gb": line.number("gpu_memory_capacity_gb_total", above_zero=True),
        "bandwidth_gb_s": line.number("gpu_memory_bandwidth", above_zero=True),
        "tflops": max(rates),
    }
