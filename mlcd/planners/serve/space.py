"""What may vary when a model is served: the file of knobs, and the configurations that they make, at a price."""

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
"""A trial takes a minute at the most, by default."""
ANY_GPU = "GPU"
"""An accelerator of any kind, as `clouds/node_types.py` names it."""
USD_PER_CORE_HOUR, USD_PER_GB_HOUR = 0.04048, 0.004445
"""AWS Fargate's list prices in us-east-1: what a core and a GB cost by default."""


def default_knobs() -> KnobTable:
    """What may vary on this machine where no file says it."""
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
    """Every setting of the knobs that fits. Those that are priced make an offer; the others are free to set on it."""
    priced = [name for name in table.knobs if name in table.usd_per_hour]
    free = [name for name in table.knobs if name not in table.usd_per_hour]
    choices = []
    for bought in product(*(table.knobs[name] for name in priced)):
        cut = dict(zip(priced, bought, strict=True))
        settings = []
        for chosen in product(*(table.knobs[name] for name in free)):
            values = {**cut, **dict(zip(free, chosen, strict=True))}
            if fits(knobs := tuple((name, values[name]) for name in table.knobs)):
                settings.append(ServerSettings(knobs))
        if settings:
            choices.append(Choice(_offer(table, tuple(cut.items())), settings=tuple(settings)))
    return Space(tuple(choices), trial, startup_limit_s)


def _offer(table: KnobTable, bought: Knobs) -> Offer:
    cut = dict(bought)
    words = ", ".join(_words(name, setting) for name, setting in bought) or "one size"
    return Offer(
        f"{table.machine}: {words}" if table.machine else words,
        table.price(bought),
        vcpus=float(cut.get(table.cores, 1.0)),
        memory_gb=float(cut.get(table.memory, 1.0)),
        accelerators=int(cut[table.gpus]) if table.gpus in cut else 0,
        accelerator=ANY_GPU if table.gpus in cut else "",
    )


def _words(name: str, setting: Knob) -> str:
    return str(setting) if isinstance(setting, str) else f"{name} {setting:g}"


KEYS = ("knobs", "price", "trial", "machine", "server", "engine", "prompts", "sweep")
SERVER_KEYS = ("url", "model", "command")
MOST = 100_000
"""Settings of all knobs together: more would take seconds a step."""
Wrong = Callable[..., JobFileError]
"""The error about what is written at these keys of the file."""


@dataclass(frozen=True)
class KnobsFile:
    """What a file of knobs says. `server`: another than our own. `trial_s`: None where it says nothing.

    Of a language model: `engine`, `prompts` as far as they are said, `sweep`.
    """

    table: KnobTable
    trial_s: float | None = None
    server: Endpoint | None = None
    engine: Engine | None = None
    prompts: Mapping[str, Any] = field(default_factory=dict)
    sweep: tuple[int, ...] | None = None


def load_knobs(path: Path) -> KnobsFile:
    """The knobs of a file; `JobFileError` says what is wrong, and where."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise JobFileError(f"{path}: no such file; a file of knobs says what may vary and what it costs") from None
    except (OSError, UnicodeError) as error:
        raise JobFileError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8 text'}") from error
    return parse_knobs(text, path)


def parse_knobs(text: str, path: Path) -> KnobsFile:
    """The knobs of a text; `path` names it in messages."""
    written, marks = read_yaml(text, path)

    def wrong(what: str, *keys: str) -> JobFileError:
        return JobFileError(at(path, marks, keys) + what)

    if not isinstance(written, dict):
        raise wrong("a file of knobs needs `knobs:`, as in `batch: [1, 8, 32]`", "knobs")
    for key in written:
        if key not in KEYS:
            raise wrong(f"unknown key '{key}': {nearest(str(key), KEYS)}", key)
    language = engine_block(written.get("engine"), wrong), prompts_block(written.get("prompts"), wrong)
    file = partial(KnobsFile, engine=language[0], prompts=language[1], sweep=sweep_block(written.get("sweep"), wrong))
    trial_s = _trial_s(written.get("trial"), wrong)
    if language[0] is not None and language[0].runs_already:
        return file(_running(language[0], written, wrong), trial_s)
    if not isinstance(written.get("knobs"), dict) or not written["knobs"]:
        raise wrong("a file of knobs needs `knobs:`, as in `batch: [1, 8, 32]`", "knobs")
    knobs = {str(name): _values(name, values, wrong) for name, values in written["knobs"].items()}
    if (count := prod(map(len, knobs.values()))) > MOST:
        raise wrong(f"{count:,} settings; at most {MOST:,} can be searched", "knobs")
    if INSTANCE in knobs:
        _check_instances(written, knobs[INSTANCE], wrong)
        return file(KnobTable(knobs), trial_s)
    base, prices = _prices(written.get("price"), knobs, wrong)
    cores, memory, gpus = "threads", "memory_gb", "gpus" if _counts(knobs.get("gpus", ())) else ""
    table = KnobTable(knobs, prices, base, str(written.get("machine") or ""), cores, memory, gpus)
    if base + sum(min(table.usd(name, value) for value in values) for name, values in knobs.items()) <= 0:
        raise wrong("a setting would be free: give it a price, as in `base: 0.1`", "price")
    return file(table, trial_s, _server(written.get("server"), wrong))


def _counts(values: tuple[Knob, ...]) -> bool:
    return bool(values) and all(isinstance(value, int) for value in values)


def _running(engine: Engine, written: Mapping[str, Any], wrong: Wrong) -> KnobTable:
    """Of an engine that runs already: nothing can be set, and it costs what it costs."""
    if written.get("knobs"):
        raise wrong("knobs: an engine that is running already cannot be set: give its command or its name", "knobs")
    base, _ = _prices(written.get("price"), {}, wrong)
    if base <= 0:
        raise wrong("price: say what it costs an hour, as in `base: 2.5`", "price")
    return endpoint_table(engine.url, base)


def endpoint_table(url: str, usd_per_hour: float) -> KnobTable:
    """The one configuration of an engine that runs already."""
    return KnobTable({"endpoint": (url,)}, base_usd=usd_per_hour)


def _check_instances(written: Mapping[str, Any], types: tuple[Knob, ...], wrong: Wrong) -> None:
    if not isinstance(types[0], str):
        raise wrong(f"{INSTANCE}: expected types of machines, such as [m5.large, c5.xlarge]", "knobs", INSTANCE)
    for key in ("price", "machine", "server"):
        if key in written:
            raise wrong(f"`{key}:` is for a server on this machine; with `{INSTANCE}` leave it out", key)


def _values(name: Any, written: Any, wrong: Wrong) -> tuple[Knob, ...]:
    values = written if isinstance(written, list) else [written]
    if not values or any(isinstance(v, bool) or not isinstance(v, str | int | float) for v in values):
        raise wrong(f"{name}: expected a list of numbers or of words, such as [1, 2, 4]", "knobs", name)
    if len({isinstance(v, str) for v in values}) > 1:
        raise wrong(f"{name}: numbers and words cannot be mixed: {written}", "knobs", name)
    if len(set(values)) < len(values):
        raise wrong(f"{name}: a value is written twice: {written}", "knobs", name)
    if any(not isinstance(v, str) and not v > 0 for v in values):
        raise wrong(f"{name}: numbers must be more than zero: {written}", "knobs", name)
    return tuple(values) if isinstance(values[0], str) else tuple(sorted(values))


def _prices(
    written: Any, knobs: Mapping[str, tuple[Knob, ...]], wrong: Wrong
) -> tuple[float, dict[str, float | Mapping[str, float]]]:
    if not isinstance(written, dict) or not written:
        raise wrong("`price:` is missing: dollars an hour, as in `price: {threads: 0.04}`", "price")
    base, prices = 0.0, dict[str, float | Mapping[str, float]]()
    for name, rate in written.items():
        if name == "base":
            base = _usd(rate, "base", name, wrong)
        elif name not in knobs:
            raise wrong(f"a price for '{name}', which is no knob: {nearest(str(name), knobs)}", "price", name)
        elif not isinstance((words := knobs[name])[0], str):
            prices[name] = _usd(rate, name, name, wrong)
        elif not isinstance(rate, dict) or set(map(str, rate)) != set(words):
            each = f"{name}: expected a price for each of {', '.join(map(str, words))}, as in {{{words[0]}: 0.5}}"
            raise wrong(each, "price", name)
        else:
            prices[name] = {str(word): _usd(usd, f"{name} {word}", name, wrong) for word, usd in rate.items()}
    return base, prices


def _usd(written: Any, what: str, name: str, wrong: Wrong) -> float:
    if written == 0 and not isinstance(written, bool):
        return 0.0
    try:
        return parse_usd(written)
    except ValueError as error:
        raise wrong(f"{what} {error}", "price", name) from None


def _trial_s(written: Any, wrong: Wrong) -> float | None:
    try:
        return None if written is None else parse_duration(written)
    except ValueError as error:
        raise wrong(f"trial {error}", "trial") from None


def _server(written: Any, wrong: Wrong) -> Endpoint | None:
    if written is None:
        return None
    if not isinstance(written, dict):
        raise wrong("server: expected `url:` and `model:`, and `command:` if MLCD is to start it", "server")
    for key in written:
        if key not in SERVER_KEYS:
            raise wrong(f"unknown key '{key}': {nearest(key, SERVER_KEYS)}", "server", key)
    url, model = str(written.get("url") or ""), str(written.get("model") or "")
    if not url.startswith(("http://", "grpc://")) or not model:
        raise wrong("server: needs `url: http://HOST:PORT` (or grpc://) and `model:`, its name there", "server")
    return Endpoint(url, model, str(written.get("command") or ""))
