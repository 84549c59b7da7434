"""The settings of the embedded server: its knobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from mlcd.core.errors import UnknownName, UserError
from mlcd.planners.serve.knobs import Knob

PRECISIONS = ("fp32", "int8")
UNSUPPORTED = 95
"""Exit code of a server whose model does not support its knobs (EOPNOTSUPP)."""


@dataclass(frozen=True)
class Settings:
    """`threads`: cores that the server is pinned to, and computing threads. `batch`: most requests in one pass of the
    model; `max_wait_ms`: how long the first of a batch waits for the others. `memory_gb`: memory limit of its process,
    in 1e9 bytes; None for no limit. `precision`: of the weights; 'fp32' leaves the model unchanged.
    """

    threads: int = 1
    batch: int = 1
    max_wait_ms: float = 5.0
    memory_gb: float | None = None
    precision: str = "fp32"

    @classmethod
    def of(cls, knobs: Mapping[str, Knob]) -> Settings:
        """The settings of these knobs; the others have their defaults."""
        known = [each.name for each in fields(cls)]
        for name in knobs:
            if name not in known:
                raise UnknownName("knob of the embedded server", name, known)
        precision = str(knobs.get("precision", cls.precision))
        if precision not in PRECISIONS:
            raise UnknownName("precision of the embedded server", precision, PRECISIONS)
        memory_gb = _number("memory_gb", knobs["memory_gb"], 0.0) if "memory_gb" in knobs else None
        if memory_gb == 0:
            raise UserError("knob memory_gb = 0: expected more than zero")
        return cls(
            _count("threads", knobs.get("threads", cls.threads)),
            _count("batch", knobs.get("batch", cls.batch)),
            _number("max_wait_ms", knobs.get("max_wait_ms", cls.max_wait_ms), 0.0),
            memory_gb,
            precision,
        )

    @property
    def arguments(self) -> list[str]:
        """The settings as command-line arguments of the server."""
        options = {f"--{each.name.replace('_', '-')}": getattr(self, each.name) for each in fields(self)}
        return [word for name, value in options.items() if value is not None for word in (name, str(value))]


def _count(name: str, value: Knob) -> int:
    number = _number(name, value, 1.0)
    if number != int(number):
        raise UserError(f"knob {name} = {value}: expected a whole number")
    return int(number)


def _number(name: str, value: Knob, least: float) -> float:
    try:
        number = float(value)
    except ValueError:
        raise UserError(f"knob {name} = {value}: expected a number") from None
    if not least <= number < float("inf"):
        raise UserError(f"knob {name} = {value}: expected {least:g} or more")
    return number
