"""Small recorded services of each kind, generated at random: known models, one unknown model, and a space.

Symbols   b    batch            g    share of the device           h, k   seconds: of a pass, and of a request in it
          w, a GB: of the weights, and of a request                u      users at once
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import Self

import numpy as np

from mlcd.core.configuration import Choice, Offer, ProbeTime, Space
from mlcd.core.job import Goal, Job, Objective, Search
from mlcd.planners.modeling.architecture import Architecture
from mlcd.planners.serve.known_models import Anatomy, Cell, Kind, Knowledge, SeenModel
from mlcd.planners.serve.llm.nouns import Prompts
from mlcd.planners.serve.llm.recording import language_model
from mlcd.planners.serve.model_facts import ModelFacts, Operator, Profile
from mlcd.planners.serve.nouns import Cap, Figure, Knobs, KnobTable, ServerSettings, ServingTask
from mlcd.planners.serve.space import serving_space

UNSEEN = "unseen"
SEEN = ("first", "second", "third", "fourth")
TRIAL = ProbeTime(120.0, 0.0)
REFUSES = 0.04
"""The share of configurations on which a model fails for no predictable reason."""

FAMILIES = {
    "cnn": {"conv2d": 0.75, "batch_norm": 0.15, "relu": 0.10},
    "transformer": {"matmul": 0.70, "softmax": 0.20, "layer_norm": 0.10},
}
PRECISIONS = {"fp32": 1.0, "bf16": 0.5}
"""The time of a pass, as a factor."""
SHARES, BATCHES = (25, 50, 100), (1, 4, 16, 64)
CORES, MEMORY_GB = (1, 2), (1, 4)
TYPES = {"small": (0.1, 1.0), "large": (0.6, 4.0), "gpu": (1.2, 20.0)}
"""Dollars an hour, and how fast."""
GPUS = {"1 x A": (1.0, 1, 24.0, 600.0), "2 x A": (2.0, 2, 48.0, 1_200.0), "1 x B": (4.0, 1, 80.0, 2_000.0)}
"""Dollars an hour, how many, GB, GB a second."""
USERS = (1, 4, 16, 64)
PROMPTS = Prompts(1_024, 256)
SYSTEMS = {"L4": (0.8, 24.0, 300.0, 121.0), "H100": (6.9, 80.0, 3_350.0, 989.0)}
"""Dollars an hour of one GPU, GB, GB a second, TFLOPS in bf16."""
GPU_COUNTS, BYTES = (1, 2, 4), {"bf16": 2.0, "fp8": 1.0}


@dataclass(frozen=True)
class World:
    """The recordings of all models, of which a search does not know one, and the space."""

    recorded: Knowledge
    space: Space

    @property
    def unseen(self) -> SeenModel:
        """The model that is to be served."""
        return next(model for model in self.recorded.models if model.facts.name == UNSEEN)

    @property
    def seen(self) -> Knowledge:
        """The recordings that a search may learn from."""
        return self.recorded.without(UNSEEN)

    def only(self, *places: int) -> Self:
        """The same world with only these configurations of the space."""
        keep = {self.space.configurations[i] for i in places}
        kept = {
            choice: tuple(c.setting for c in choice.configurations if c in keep and c.setting is not None)
            for choice in self.space.choices
        }
        choices = tuple(replace(choice, settings=settings) for choice, settings in kept.items() if settings)
        return replace(self, space=Space(choices, self.space.probe_time))

    def where_nothing_runs(self) -> Self:
        """The same, but the unseen model runs nowhere."""
        models = [replace(m, cells={}) if m.facts.name == UNSEEN else m for m in self.recorded.models]
        return replace(self, recorded=replace(self.recorded, models=tuple(models)))

    def job(
        self,
        goal: Goal | None = None,
        caps: tuple[Cap, ...] = (),
        min_rate: float | None = None,
        trials: int | None = 10,
        seed: int = 0,
    ) -> Job:
        """The job of serving the unseen model."""
        facts = self.unseen.facts
        service = ServingTask(facts, caps, min_rate, language=language_model(facts))
        search = Search(seed=seed, trials=trials)
        return Job(UNSEEN, 1.0, goal or Goal(Objective.PER_DOLLAR), search=search, ask=service)

    def latency(self, quantile: float, figure: Figure = Figure.P95) -> Cap:
        """A cap that this share of the unseen model's cells keeps."""
        cells = [cell.figures[figure] for cell in self.unseen.cells.values()]
        return Cap(figure, float(np.quantile(cells, quantile)))


def random_world(kind: Kind, seed: int) -> World:
    """Four seen models and one unseen model, generated alike."""
    makes = {Kind.DEVICE: _device, Kind.INSTANCES: _instances, Kind.LANGUAGE: _language, Kind.ENGINES: _engines}
    return makes[kind](np.random.default_rng([seed, list(Kind).index(kind)]))


def _models(make: Callable[[str], SeenModel]) -> tuple[SeenModel, ...]:
    return tuple(make(name) for name in (*SEEN, UNSEEN))


def _device(rng: np.random.Generator) -> World:
    """A pass takes h + k b / g, bf16 half as long on the device; it holds w + a b."""

    def model(name: str) -> SeenModel:
        family = str(rng.choice(list(FAMILIES)))
        h, k = 10 ** rng.uniform(-3, -2), 10 ** rng.uniform(-4, -2.5)
        w, a = 10 ** rng.uniform(-1.5, -0.2), 10 ** rng.uniform(-2.5, -1.3)
        bends = rng.uniform(0.5, 1.0)
        cells: dict[Knobs, Cell] = {}
        for (precision, factor), share, batch in product(PRECISIONS.items(), SHARES, BATCHES):
            pass_s = float(h + factor * k * batch / (share / 100) ** bends)
            figures = dict.fromkeys((Figure.P50, Figure.P95, Figure.P99), pass_s)
            if rng.random() >= REFUSES:
                knobs = (("precision", precision), ("sm_share", share), ("batch", batch))
                cells[knobs] = Cell(batch / pass_s, figures, float(w + factor * a * batch))

        def profile(precision: str, batch: int) -> Profile:
            operators = (
                Operator(each, 10, share * k * batch * PRECISIONS[precision], share * 1_000 * a)
                for each, share in FAMILIES[family].items()
            )
            return Profile(batch, tuple(operators), precision)

        profiles = tuple(profile(precision, batch) for precision, batch in product(PRECISIONS, (8, 64)))
        inputs = "image224" if family == "cnn" else "tokens128"
        return SeenModel(ModelFacts(name, family, inputs, float(w * 1_000), profiles=profiles), cells)

    knobs: dict[str, tuple[str | float, ...]] = {"precision": tuple(PRECISIONS), "sm_share": SHARES, "batch": BATCHES}
    host = {"cpu_cores": CORES, "memory_gb": MEMORY_GB}
    prices = {"cpu_cores": 0.05, "sm_share": 0.04, "memory_gb": 0.02}
    table = KnobTable({**knobs, **host}, prices, cores="cpu_cores", memory="memory_gb")
    hosts = {"image224": {1.0: 400.0, 2.0: 800.0}, "tokens128": {1.0: 4_000.0, 2.0: 8_000.0}}
    anatomy = Anatomy(tuple(knobs), host="cpu_cores", memory="memory_gb")
    knowledge = Knowledge(Kind.DEVICE, anatomy, _models(model), hosts, source="made up")
    return World(knowledge, serving_space(table, TRIAL))


def _instances(rng: np.random.Generator) -> World:
    """A pass takes h + k b / speed of the type; its tail is a tenth longer."""

    def model(name: str) -> SeenModel:
        h, k = 10 ** rng.uniform(-3, -2), 10 ** rng.uniform(-3, -2)
        cells: dict[Knobs, Cell] = {}
        for (each, (_, speed)), batch in product(TYPES.items(), BATCHES):
            pass_s = float(h + k * batch / speed * 10 ** rng.normal(0, 0.05))
            figures = {Figure.P50: pass_s, Figure.P95: 1.1 * pass_s, Figure.P99: 1.2 * pass_s}
            if rng.random() >= REFUSES:
                cells[("instance_type", each), ("batch", batch)] = Cell(batch / pass_s, figures)
        return SeenModel(ModelFacts(name), cells)

    prices = {each: usd for each, (usd, _) in TYPES.items()}
    table = KnobTable({"instance_type": tuple(TYPES), "batch": BATCHES}, {"instance_type": prices})
    knowledge = Knowledge(Kind.INSTANCES, Anatomy(("instance_type", "batch")), _models(model), source="made up")
    return World(knowledge, serving_space(table, TRIAL))


def _language(rng: np.random.Generator) -> World:
    """The time of a token is that of reading the weights, and a little more for each user; it fits or it does not."""

    def model(name: str) -> SeenModel:
        billions = float(rng.choice([3, 7, 13, 20]))
        slows = rng.uniform(0.005, 0.03)
        cells: dict[Knobs, Cell] = {}
        for (gpus, (_, _, memory_gb, gb_per_s)), users in product(GPUS.items(), USERS):
            if users * 0.5 > 0.9 * memory_gb - 2 * billions:
                continue
            token_s = 2 * billions / gb_per_s * (1 + slows * users)
            first_s = 5 * token_s * (1 + users / 16)
            figures = {Figure.ITL_P50: token_s, Figure.ITL_P95: 1.3 * token_s}
            figures |= {Figure.TTFT_P50: first_s, Figure.TTFT_P95: 2 * first_s}
            figures |= {Figure.P50: first_s + 100 * token_s, Figure.P95: 2 * first_s + 200 * token_s}
            cells[("gpus", gpus), ("users", users)] = Cell(float(users / token_s), figures)
        return SeenModel(ModelFacts(name, parameters=billions), cells)

    prices = {each: usd for each, (usd, _, _, _) in GPUS.items()}
    table = KnobTable({"gpus": tuple(GPUS), "users": USERS}, {"gpus": prices})
    numbers = {
        each: {"count": float(count), "memory_gb": gb, "bandwidth_gb_s": gb_per_s, "tflops": gb_per_s / 5}
        for each, (_, count, gb, gb_per_s) in GPUS.items()
    }
    anatomy = Anatomy(("gpus", "users"))
    knowledge = Knowledge(Kind.LANGUAGE, anatomy, _models(model), resources={"gpus": numbers}, source="made up")
    return World(knowledge, serving_space(table, TRIAL))


def _engines(rng: np.random.Generator) -> World:
    """A token takes the time to read the weights and the users' keys and values, and a little; prefill takes FLOPs."""

    def model(name: str) -> SeenModel:
        layers, hidden = int(rng.choice([16, 32, 64])), int(rng.choice([2_048, 4_096]))
        billions, kv_gb = 12 * layers * hidden**2 / 1e9, 4 * layers * 1_024 * 1_280 / 1e9
        host_s, busy = 10 ** rng.uniform(-3, -2), rng.uniform(0.3, 0.6)
        cells: dict[Knobs, Cell] = {}
        for (gpu, (_, memory_gb, gb_s, tflops)), gpus, (precision, bytes_), users in product(
            SYSTEMS.items(), GPU_COUNTS, BYTES.items(), USERS
        ):
            if billions * bytes_ + users * kv_gb > 0.9 * memory_gb * gpus:
                continue
            tpot_s = float(host_s + (billions * bytes_ + users * kv_gb) / gb_s / gpus)
            ttft_s = float(
                host_s + 2 * billions * PROMPTS.input_tokens / (busy * 1e3 * tflops * gpus) * (1 + users / 2)
            )
            answer_s = ttft_s + (PROMPTS.output_tokens - 1) * tpot_s
            figures = {Figure.TTFT_P50: ttft_s, Figure.TPOT_P50: tpot_s, Figure.P50: answer_s, Figure.P95: answer_s}
            cells[_engine_knobs(gpu, gpus, precision, users)] = Cell(users * PROMPTS.output_tokens / answer_s, figures)
        sizes = Architecture(billions, billions, layers, hidden, hidden // 128, 8, 128, 32_000, full_layers=layers)
        return SeenModel(ModelFacts(name, parameters=billions, architecture=sizes, prompts=PROMPTS), cells)

    choices = [
        Choice(
            Offer(f"{gpus} x {gpu}", gpus * SYSTEMS[gpu][0], 1.0, 1.0),
            settings=tuple(ServerSettings(_engine_knobs(gpu, gpus, *rest)) for rest in product(BYTES, USERS)),
        )
        for gpu, gpus in product(SYSTEMS, GPU_COUNTS)
    ]
    anatomy = Anatomy(tuple(name for name, _ in _engine_knobs("", 1, "", 1)))
    return World(Knowledge(Kind.ENGINES, anatomy, _models(model), source="made up"), Space(tuple(choices), TRIAL))


def _engine_knobs(gpu: str, gpus: int, precision: str, users: int) -> Knobs:
    return (("gpu", gpu), ("gpus", gpus), ("tp", gpus), ("precision", precision), ("concurrency", users))
