"""What may vary when a model is served: the file of knobs, and the configurations that they make, at a price."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from mlcd.core.configuration import Choice, Offer, ProbeTime, Space
from mlcd.core.errors import JobFileError
from mlcd.core.units import parse_duration, parse_usd
from mlcd.planners.jobfile.keys import nearest
from mlcd.planners.jobfile.marks import Marks, at, read_yaml
from mlcd.planners.serve.nouns import Endpoint, Knob, Knobs, KnobTable, ServerSettings

TRIAL = ProbeTime(60.0, 0.0)
"""A trial of a server takes a minute at the most, where nobody says otherwise."""


def serving_space(table: KnobTable, trial: ProbeTime = TRIAL, startup_limit_s: float = 0.0) -> Space:
    """Every setting of the knobs. Those that are priced make an offer; the others are free to set on it."""
    priced = [name for name in table.knobs if name in table.usd_per_hour]
    free = [name for name in table.knobs if name not in table.usd_per_hour]
    choices = []
    for bought in product(*(table.knobs[name] for name in priced)):
        cut = dict(zip(priced, bought, strict=True))
        settings = []
        for chosen in product(*(table.knobs[name] for name in free)):
            told = {**cut, **dict(zip(free, chosen, strict=True))}
            settings.append(ServerSettings(tuple((name, told[name]) for name in table.knobs)))
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
    )


def _words(name: str, setting: Knob) -> str:
    return str(setting) if isinstance(setting, str) else f"{name} {setting:g}"


KEYS = ("knobs", "price", "trial", "machine", "server")
SERVER_KEYS = ("url", "model", "command")
TRIAL_S = 60.0
MOST = 100_000
"""Settings of all knobs together: more would take seconds a step."""


@dataclass(frozen=True)
class KnobsFile:
    """What a file of knobs says. `server`: another than our own."""

    table: KnobTable
    trial_s: float = TRIAL_S
    server: Endpoint | None = None
    path: Path = field(default_factory=Path)


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
    if not isinstance(written, dict) or not isinstance(written.get("knobs"), dict) or not written["knobs"]:
        raise JobFileError(at(path, marks, ("knobs",)) + "a file of knobs needs `knobs:`, as in `batch: [1, 8, 32]`")
    for key in written:
        if key not in KEYS:
            raise JobFileError(at(path, marks, (key,)) + f"unknown key '{key}': {nearest(str(key), KEYS)}")
    knobs = {str(name): _values(name, told, path, marks) for name, told in written["knobs"].items()}
    count = 1
    for values in knobs.values():
        count *= len(values)
    if count > MOST:
        raise JobFileError(at(path, marks, ("knobs",)) + f"{count:,} settings; at most {MOST:,} can be searched")
    base, prices = _prices(written.get("price"), knobs, path, marks)
    table = KnobTable(knobs, prices, base, str(written.get("machine") or ""), "threads", "memory_gb")
    if base + sum(_least_usd(table)) <= 0:
        raise JobFileError(at(path, marks, ("price",)) + "a setting would be free: give it a price, as in `base: 0.1`")
    return KnobsFile(table, _trial_s(written.get("trial"), path, marks), _server(written, path, marks), path)


def _least_usd(table: KnobTable) -> list[float]:
    """What each priced knob adds at the least."""
    least = []
    for name, rate in table.usd_per_hour.items():
        values = table.knobs[name]
        least.append(min(rate.values()) if isinstance(rate, Mapping) else min(rate * float(v) for v in values))
    return least


def _values(name: Any, told: Any, path: Path, marks: Marks) -> tuple[Knob, ...]:
    here = at(path, marks, ("knobs", name))
    values = told if isinstance(told, list) else [told]
    if not values or any(isinstance(v, bool) or not isinstance(v, str | int | float) for v in values):
        raise JobFileError(here + f"{name}: expected a list of numbers or of words, such as [1, 2, 4]")
    if len({isinstance(v, str) for v in values}) > 1:
        raise JobFileError(here + f"{name}: numbers and words cannot be mixed: {told}")
    if len(set(values)) < len(values):
        raise JobFileError(here + f"{name}: a value is written twice: {told}")
    if any(not isinstance(v, str) and not v > 0 for v in values):
        raise JobFileError(here + f"{name}: numbers must be more than zero: {told}")
    return tuple(values) if isinstance(values[0], str) else tuple(sorted(values))


def _prices(
    told: Any, knobs: Mapping[str, tuple[Knob, ...]], path: Path, marks: Marks
) -> tuple[float, dict[str, float | Mapping[str, float]]]:
    if not isinstance(told, dict) or not told:
        raise JobFileError(
            at(path, marks, ("price",)) + "`price:` is missing: dollars an hour, as in `price: {threads: 0.04}`"
        )
    base = 0.0
    prices: dict[str, float | Mapping[str, float]] = {}
    for name, rate in told.items():
        here = at(path, marks, ("price", name))
        if name == "base":
            base = _usd(rate, here, "base")
        elif name not in knobs:
            raise JobFileError(here + f"a price for '{name}', which is no knob: {nearest(str(name), knobs)}")
        elif isinstance(knobs[name][0], str):
            prices[name] = _by_word(name, rate, knobs[name], here)
        else:
            prices[name] = _usd(rate, here, name)
    return base, prices


def _by_word(name: str, rate: Any, words: tuple[Knob, ...], here: str) -> dict[str, float]:
    if not isinstance(rate, dict) or set(map(str, rate)) != set(words):
        listed = ", ".join(map(str, words))
        raise JobFileError(here + f"{name}: expected a price for each of {listed}, as in {{{words[0]}: 0.5}}")
    return {str(word): _usd(usd, here, f"{name} {word}") for word, usd in rate.items()}


def _usd(told: Any, here: str, name: str) -> float:
    if told == 0 and not isinstance(told, bool):
        return 0.0
    try:
        return parse_usd(told)
    except ValueError as error:
        raise JobFileError(here + f"{name} {error}") from None


def _trial_s(told: Any, path: Path, marks: Marks) -> float:
    if told is None:
        return TRIAL_S
    try:
        return parse_duration(told)
    except ValueError as error:
        raise JobFileError(at(path, marks, ("trial",)) + f"trial {error}") from None


def _server(written: Mapping[str, Any], path: Path, marks: Marks) -> Endpoint | None:
    told = written.get("server")
    if told is None:
        return None
    here = at(path, marks, ("server",))
    if not isinstance(told, dict):
        raise JobFileError(here + "server: expected `url:` and `model:`, and `command:` if MLCD is to start it")
    for key in told:
        if key not in SERVER_KEYS:
            raise JobFileError(at(path, marks, ("server", key)) + f"unknown key '{key}': {nearest(key, SERVER_KEYS)}")
    url, model = str(told.get("url") or ""), str(told.get("model") or "")
    if not url.startswith(("http://", "grpc://")) or not model:
        raise JobFileError(here + "server: needs `url: http://HOST:PORT` (or grpc://) and `model:`, its name there")
    return Endpoint(url, model, str(told.get("command") or ""))
