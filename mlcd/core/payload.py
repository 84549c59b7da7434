"""Payloads: a planner's own data in jobs, configurations, launches, measurements and decisions.

The core carries payloads and never looks inside. The fields `ask`, `setting`, `billing`, `work`, `evidence`, `plan` and
`easing` each hold one. A planner subclasses the base class below with a frozen dataclass and gives it a `kind`: the
planner's name, a dot and a word ('serve.task'). The ledger stores the kind and finds the class by it; if the fields
change incompatibly, the class gets a new kind.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Self

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, TypeAdapter
    from pydantic_core import CoreSchema

    from mlcd.core.configuration import Offer

PLANNERS = "mlcd.planners"
"""The package of built-in planners, and the entry-point group for those of other packages."""
_KINDS: dict[str, type[Payload]] = {}


class Payload:
    """Base of all payloads. In JSON, a field of a base type has the `kind` in addition to the payload's own fields."""

    __slots__ = ()
    kind: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "kind" in cls.__dict__:
            _KINDS[cls.kind] = cls

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """For a base class, any payload by its kind; for a class with a kind, its own fields."""
        if cls.kind:
            return handler(source)
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(
            _read, serialization=core_schema.plain_serializer_function_ser_schema(_write)
        )


class Ask(Payload):
    """A planner's part of a job: what it should do beyond plain training.

    `may_be_on_trial`: the run may start on a configuration that is only likely to end in time, and move to a fallback.
    `replans`: the planner adapts its plan to the limits while the job runs. `launches_compare`: two launches of one
    configuration measure the same thing, so they show how far launches differ. `has_confidence`: the owner may choose
    the confidence of certificates.
    """

    __slots__ = ()
    may_be_on_trial: ClassVar[bool] = True
    replans: ClassVar[bool] = False
    launches_compare: ClassVar[bool] = True
    has_confidence: ClassVar[bool] = True

    @property
    def planner(self) -> str:
        """The name of its planner."""
        return self.kind.partition(".")[0]

    def same_work(self, other: Ask) -> bool:
        """Whether the measurements of one job are valid for the other, as far as this planner's part matters."""
        return type(other) is type(self)


class Setting(Payload):
    """What varies between configurations besides the offer and the node count."""

    __slots__ = ()

    def words(self, machines: str, nodes: int) -> str:
        """The configuration as text; `machines` is '3 x c5.xlarge'."""
        return machines

    def suits(self, nodes: int, offer: Offer) -> bool:
        """Whether this setting is possible on this many nodes of an offer."""
        return True


class Billing(Payload):
    """How a cloud bills. `metered`: by usage, which the backend counts and keeps below `Launch.most_usd`."""

    __slots__ = ()
    metered: ClassVar[bool] = False

    def usd_per_hour(self, nodes_usd_per_hour: float) -> float:
        """Price of the nodes and of what is rented with them."""
        return nodes_usd_per_hour

    def usd(self, nodes_usd_per_hour: float, seconds: float) -> float:
        """Cost of holding the nodes for this time, without retries."""
        return self.usd_per_hour(nodes_usd_per_hour) * seconds / 3_600

    def worst_usd(self, nodes_usd_per_hour: float, seconds: float) -> float:
        """The same if everything is retried that may be."""
        return self.usd(nodes_usd_per_hour, seconds)


class Work(Payload):
    """What a launch should do, if that is not simply the job."""

    __slots__ = ()


class Evidence(Payload):
    """What a launch has shown besides its rate."""

    __slots__ = ()

    def pooled(self, other: Self) -> Self:
        """The evidence of two measurements of one configuration together."""
        return self


class Plan(Payload):
    """What was decided besides a configuration."""

    __slots__ = ()


class Easing(Payload):
    """A requirement that could be relaxed, other than budget and deadline."""

    __slots__ = ()


def _write(payload: Payload) -> dict[str, Any]:
    # Through JSON, where infinity and NaN become strings, whatever the surrounding document does with them.
    (fields,) = json.loads(_adapter(payload.kind).dump_json((payload,)))
    return {"kind": payload.kind, **fields}


def _read(value: Any) -> Payload:
    if isinstance(value, Payload):
        return value
    fields = dict(value)
    kind = str(fields.pop("kind", ""))
    if kind not in _KINDS:
        _import_planner(kind.partition(".")[0])
    if kind not in _KINDS:
        raise ValueError(f"'{kind}': no installed planner knows it")
    payload: Payload = _adapter(kind).validate_python((fields,))[0]
    return payload


@cache
def _adapter(kind: str) -> TypeAdapter[Any]:
    from pydantic import ConfigDict, TypeAdapter

    # In a tuple, because pydantic accepts no configuration for a bare dataclass.
    return TypeAdapter(tuple[_KINDS[kind]], config=ConfigDict(ser_json_inf_nan="strings"))  # type: ignore[valid-type]


@cache
def _import_planner(name: str) -> None:
    """Import a planner's `nouns` module, or its entry point, which registers its payload classes."""
    try:
        import_module(f"{PLANNERS}.{name}.nouns")
    except ModuleNotFoundError:
        from importlib.metadata import entry_points

        for planner in entry_points(group=PLANNERS, name=name):
            planner.load()


def upgraded(value: Any) -> Any:
    """JSON from before payloads had kinds, converted to today's format."""
    return import_module(f"{PLANNERS}.old_formats").upgraded(value)
