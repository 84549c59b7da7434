"""The blocks of a file of knobs for language models: `engine:`, `prompts:` and `sweep:`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mlcd.core.errors import JobFileError, nearest
from mlcd.core.units import parse_batches, parse_duration, parse_whole
from mlcd.planners.serve.llm.nouns import STARTUP_S, Engine, Prompts

ErrorAt = Callable[..., JobFileError]
ENGINE_KEYS = ("name", "command", "url", "version", "startup")
PROMPT_KEYS = ("input_tokens", "output_tokens", "spread", "shared_prefix", "file", "chat", "tokenizer")


def parse_sweep(written: Any) -> tuple[int, ...]:
    """Parse concurrencies, ascending: '1,2,4,8', '1..64' (doubling), or [1, 8, 64]."""
    text = ",".join(map(str, written)) if isinstance(written, list | tuple) else str(written)
    try:
        return parse_batches(text)
    except ValueError:
        raise ValueError(f"'{text}': expected concurrent requests, such as 1,4,16 or 1..64 (doubling)") from None


def engine_block(written: Any, error_at: ErrorAt) -> Engine | None:
    """Parse `engine:`."""
    if written is None:
        return None
    block = _block("engine", written, ENGINE_KEYS, "`name:`, `command:` or `url:`", error_at)
    name, command, url, version = (str(block.get(key) or "") for key in ("name", "command", "url", "version"))
    if not (name or command or url):
        raise error_at(
            "engine: needs a `name:` such as vllm, a `command:` that starts it, or the `url:` of one", "engine"
        )
    if command and "{port}" not in command and not url:
        raise error_at("engine: the command has no {port}: add it, or the address, `url: http://HOST:PORT`", "engine")
    try:
        startup_s = parse_duration(block["startup"]) if "startup" in block else STARTUP_S
    except ValueError as error:
        raise error_at(f"startup {error}", "engine", "startup") from None
    return Engine(name, command, url, version, startup_s)


def prompts_block(written: Any, error_at: ErrorAt) -> Mapping[str, Any]:
    """Parse `prompts:` into the fields of `Prompts` that it gives."""
    if written is None:
        return {}
    block = _block("prompts", written, PROMPT_KEYS, "`input_tokens:` and `output_tokens:`", error_at)
    found: dict[str, Any] = {}
    for key, value in block.items():
        try:
            found[key] = _prompt_value(key, value)
        except ValueError as error:
            raise error_at(f"{key} {error}", "prompts", key) from None
    return found


def sweep_block(written: Any, error_at: ErrorAt) -> tuple[int, ...] | None:
    """Parse `sweep:`, the concurrencies of a trial."""
    try:
        return None if written is None else parse_sweep(written)
    except ValueError as error:
        raise error_at(f"sweep {error}", "sweep") from None


def _prompt_value(key: str, value: Any) -> Any:
    if key in ("file", "tokenizer"):
        return str(value)
    if key == "chat":
        if not isinstance(value, bool):
            raise ValueError(f"'{value}': expected true or false")
        return value
    if key == "spread":
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 2:
            raise ValueError(f"'{value}': expected a share of the length from 0 to 2, such as 0.3")
        return float(value)
    return parse_whole(value, least=0 if key == "shared_prefix" else 1)


def _block(name: str, written: Any, known: tuple[str, ...], expected: str, error_at: ErrorAt) -> dict[str, Any]:
    if not isinstance(written, dict):
        raise error_at(f"{name}: expected {expected}", name)
    for key in written:
        if key not in known:
            raise error_at(f"unknown key '{key}': {nearest(str(key), known)}", name, key)
    return written


def prompts_of(chosen: Mapping[str, Any], block: Mapping[str, Any]) -> Prompts:
    """The prompts of a job: options of the command take precedence over the file."""
    own = {name: chosen[name] for name in ("input_tokens", "output_tokens", "shared_prefix") if chosen.get(name)}
    file = {"file": chosen["prompts"]} if chosen.get("prompts") else {}
    return Prompts(**{**block, **own, **file})
