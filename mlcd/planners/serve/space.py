"""The search space of `mlcd serve`: reads the file of knobs and makes the priced configurations."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from mlcd.core.configuration import Choice, Offer, ProbeTime, Space
from mlcd.core.errors import JobFileError, nearest
from mlcd.core.units import parse_duration, parse_usd
from mlcd.planners.jobfile.source import at, read_yaml
from mlcd.planners.serve.llm.blocks import engine_block, prompts_block, sweep_block
from mlcd.planners.serve.llm.nouns import Engine
from mlcd.planners.serve.nouns import INSTANCE, Endpoint, Knob, Knobs, KnobTable, ServerSettings

TRIAL = ProbeTime(60.0, 0.0)
"""The default time limit of a trial: one minute."""
ANY_GPU = "GPU"
"""An accelerator of any kind, as `clouds/node_types.py` names it."""
USD_PER_CORE_HOUR, USD_PER_GB_HOUR = 0.04048, 0.004445
"""Default prices of a core and of a GB: AWS Fargate's list prices in us-east-1."""


def default_knobs() -> KnobTable:
    """The knobs on this machine if there is no file of knobs."""
    most = os.cpu_count() or 1
    threads = tuple(sorted({min(2**i, most) for i in range(7)}))
    return KnobTable(
        {
            "precision": ("fp32", "int8"),
            "threads": threads,
            "batch": (1, 2, 4, 8, 16, 32),
            "memory_gb": (0.25, 0.5, 1.0, 2.0),
        },
        {"threads": USD_PER_CORE_HOUR, "memory_gb": USD_PER_GB_HOUR},
        cores="threads",
        memory="memory_gb",
    )


def serving_space(
    table: KnobTable,
    trial: ProbeTime = TRIAL,
    startup_limit_s: float = 0.0,
    fits: Callable[[Knobs], bool] = lambda knobs: True,
) -> Space:
    """Every combination of knob values that fits. Priced knobs define an offer; the others are settings on it."""
    priced = [name for name in table.knobs if name in table.usd_per_hour]
    unpriced = [name for name in table.knobs if name not in table.usd_per_hour]
    choices = []
    for size in product(*(table.knobs[name] for name in priced)):
        priced_values = dict(zip(priced, size, strict=True))
        settings = []
        for chosen in product(*(table.knobs[name] for name in unpriced)):
            values = {**priced_values, **dict(zip(unpriced, chosen, strict=True))}
            if fits(knobs := tuple((name, values[name]) for name in table.knobs)):
                settings.append(ServerSettings(knobs))
        if settings:
            choices.append(Choice(_offer(table, tuple(priced_values.items())), settings=tuple(settings)))
    return Space(tuple(choices), trial, startup_limit_s)


def _offer(table: KnobTable, priced: Knobs) -> Offer:
    values = dict(priced)
    words = ", ".join(_words(name, setting) for name, setting in priced) or "one size"
    return Offer(
        f"{table.machine}: {words}" if table.machine else words,
        table.price(priced),
        vcpus=float(values.get(table.cores, 1.0)),
        memory_gb=float(values.get(table.memory, 1.0)),
        accelerators=int(values[table.gpus]) if table.gpus in values else 0,
        accelerator=ANY_GPU if table.gpus in values else "",
    )


def _words(name: str, setting: Knob) -> str:
    return str(setting) if isinstance(setting, str) else f"{name} {setting:g}"


KEYS = ("knobs", "price", "trial", "machine", "server", "engine", "prompts", "sweep")
SERVER_KEYS = ("url", "model", "command")
MOST_CONFIGURATIONS = 100_000
"""With more, each step of the search would take seconds."""
ErrorAt = Callable[..., JobFileError]
"""Makes the error for a message and the keys of the file that it is about."""


@dataclass(frozen=True)
class KnobsFile:
    """The content of a file of knobs; None for what it does not state. `server`: to use in place of our own.

    For language models only: `engine`, `prompts` (the keys that are given), `sweep`.
    """

    table: KnobTable
    trial_s: float | None = None
    server: Endpoint | None = None
    engine: Engine | None = None
    prompts: Mapping[str, Any] = field(default_factory=dict)
    sweep: tuple[int, ...] | None = None


def load_knobs(path: Path) -> KnobsFile:
    """Read a file of knobs. JobFileError says what is wrong, and where."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise JobFileError(f"{path}: no such file; --knobs names a YAML file with knobs and prices") from None
    except (OSError, UnicodeError) as error:
        raise JobFileError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8 text'}") from error
    return parse_knobs(text, path)


def parse_knobs(text: str, path: Path) -> KnobsFile:
    """Parse the text of a file of knobs; `path` is for messages."""
    written, marks = read_yaml(text, path)

    def error_at(what: str, *keys: str) -> JobFileError:
        return JobFileError(at(path, marks, keys) + what)

    if not isinstance(written, dict):
        raise error_at("a file of knobs needs `knobs:`, as in `batch: [1, 8, 32]`", "knobs")
    for key in written:
        if key not in KEYS:
            raise error_at(f"unknown key '{key}': {nearest(str(key), KEYS)}", key)
    engine, prompts = engine_block(written.get("engine"), error_at), prompts_block(written.get("prompts"), error_at)
    file = partial(KnobsFile, engine=engine, prompts=prompts, sweep=sweep_block(written.get("sweep"), error_at))
    trial_s = _trial_s(written.get("trial"), error_at)
    if engine is not None and engine.runs_already:
        return file(_running(engine, written, error_at), trial_s)
    if not isinstance(written.get("knobs"), dict) or not written["knobs"]:
        raise error_at("a file of knobs needs `knobs:`, as in `batch: [1, 8, 32]`", "knobs")
    knobs = {str(name): _values(name, values, error_at) for name, values in written["knobs"].items()}
    if (count := prod(map(len, knobs.values()))) > MOST_CONFIGURATIONS:
        raise error_at(f"{count:,} configurations; at most {MOST_CONFIGURATIONS:,} can be searched", "knobs")
    if INSTANCE in knobs:
        _check_instances(written, knobs[INSTANCE], error_at)
        return file(KnobTable(knobs), trial_s)
    base, prices = _prices(written.get("price"), knobs, error_at)
    cores, memory, gpus = "threads", "memory_gb", "gpus" if _counts(knobs.get("gpus", ())) else ""
    table = KnobTable(knobs, prices, base, str(written.get("machine") or ""), cores, memory, gpus)
    if base + sum(min(table.usd(name, value) for value in values) for name, values in knobs.items()) <= 0:
        raise error_at("a setting would be free: give it a price, as in `base: 0.1`", "price")
    return file(table, trial_s, _server(written.get("server"), error_at))


def _counts(values: tuple[Knob, ...]) -> bool:
    return bool(values) and all(isinstance(value, int) for value in values)


def _running(engine: Engine, written: Mapping[str, Any], error_at: ErrorAt) -> KnobTable:
    """The knobs of an engine that is already running: none; only its price is needed."""
    if written.get("knobs"):
        raise error_at("knobs: a running engine cannot be configured: give its `name:` or `command:`", "knobs")
    base, _ = _prices(written.get("price"), {}, error_at)
    if base <= 0:
        raise error_at("price: state the price of an hour, as in `base: 2.5`", "price")
    return endpoint_table(engine.url, base)


def endpoint_table(url: str, usd_per_hour: float) -> KnobTable:
    """The only configuration of an engine that is already running."""
    return KnobTable({"endpoint": (url,)}, base_usd=usd_per_hour)


def _check_instances(written: Mapping[str, Any], types: tuple[Knob, ...], error_at: ErrorAt) -> None:
    if not isinstance(types[0], str):
        raise error_at(f"{INSTANCE}: expected types of machines, such as [m5.large, c5.xlarge]", "knobs", INSTANCE)
    for key in ("price", "machine", "server"):
        if key in written:
            raise error_at(f"`{key}:` is for a server on this machine; with `{INSTANCE}` leave it out", key)


def _values(name: Any, written: Any, error_at: ErrorAt) -> tuple[Knob, ...]:
    values = written if isinstance(written, list) else [written]
    if not values or any(isinstance(v, bool) or not isinstance(v, str | int | float) for v in values):
        raise error_at(f"{name}: expected a list of numbers or of words, such as [1, 2, 4]", "knobs", name)
    if len({isinstance(v, str) for v in values}) > 1:
        raise error_at(f"{name}: numbers and words cannot be mixed: {written}", "knobs", name)
    if len(set(values)) < len(values):
        raise error_at(f"{name}: a value is written twice: {written}", "knobs", name)
    if any(not isinstance(v, str) and not v > 0 for v in values):
        raise error_at(f"{name}: numbers must be more than zero: {written}", "knobs", name)
    return tuple(values) if isinstance(values[0], str) else tuple(sorted(values))


def _prices(
    written: Any, knobs: Mapping[str, tuple[Knob, ...]], error_at: ErrorAt
) -> tuple[float, dict[str, float | Mapping[str, float]]]:
    if not isinstance(written, dict) or not written:
        raise error_at("`price:` is missing: dollars an hour, as in `price: {threads: 0.04}`", "price")
    base, prices = 0.0, dict[str, float | Mapping[str, float]]()
    for name, rate in written.items():
        if name == "base":
            base = _usd(rate, "base", name, error_at)
        elif name not in knobs:
            raise error_at(f"price for '{name}', which is not a knob: {nearest(str(name), knobs)}", "price", name)
        elif not isinstance((words := knobs[name])[0], str):
            prices[name] = _usd(rate, name, name, error_at)
        elif not isinstance(rate, dict) or set(map(str, rate)) != set(words):
            each = f"{name}: expected a price for each of {', '.join(map(str, words))}, as in {{{words[0]}: 0.5}}"
            raise error_at(each, "price", name)
        else:
            prices[name] = {str(word): _usd(usd, f"{name} {word}", name, error_at) for word, usd in rate.items()}
    return base, prices


def _usd(written: Any, what: str, name: str, error_at: ErrorAt) -> float:
    if written == 0 and not isinstance(written, bool):
        return 0.0
    try:
        return parse_usd(written)
    except ValueError as error:
        raise error_at(f"{what} {error}", "price", name) from None


def _trial_s(written: Any, error_at: ErrorAt) -> float | None:
    try:
        return None if written is None else parse_duration(written)
    except ValueError as error:
        raise error_at(f"trial {error}", "trial") from None


def _server(written: Any, error_at: ErrorAt) -> Endpoint | None:
    if written is None:
        return None
    if not isinstance(written, dict):
        raise error_at("server: expected `url:` and `model:`, and `command:` if MLCD is to start it", "server")
    for key in written:
        if key not in SERVER_KEYS:
            raise error_at(f"unknown key '{key}': {nearest(key, SERVER_KEYS)}", "server", key)
    url, model = str(written.get("url") or ""), str(written.get("model") or "")
    if not url.startswith(("http://", "grpc://")) or not model:
        raise error_at("server: needs `url: http://HOST:PORT` (or grpc://) and `model:`, its name there", "server")
    return Endpoint(url, model, str(written.get("command") or ""))
