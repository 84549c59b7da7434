"""What a planner adds to the nouns of the core, which carries it and never looks inside.

A job's `ask`, a configuration's `setting` and `billing`, a launch's `work`, a measurement's `evidence`, a decision's
`plan` and a relaxation's `easing` each belong to one planner. It subclasses the base below with a frozen dataclass and
gives it a `kind`: its own name, a dot, and what it is ('serve.task'). That is how the ledger finds the class again; a
changed shape gets a new kind.
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
"""The package of our own planners, and the entry-point group of those that other packages add."""
_KINDS: dict[str, type[Payload]] = {}


class Payload:
    """Anything that a planner adds. In JSON, a field that is typed by a base class names the kind beside the rest."""

    __slots__ = ()
    kind: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "kind" in cls.__dict__:
            _KINDS[cls.kind] = cls

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Of a base class: any of its kinds, by name. Of a kind itself: its own fields."""
        if cls.kind:
            return handler(source)
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(
            _read, serialization=core_schema.plain_serializer_function_ser_schema(_write)
        )


class Ask(Payload):
    """What a job asks of its planner, beyond a job that is trained once on machines.

    `may_be_on_trial`: its run may start on a configuration that is only likely to do, and move to a fallback.
    `replans`: its planner adapts the plan to the limits while it runs. `launches_compare`: two launches of one
    configuration measure the same, so that they tell how far launches differ. `has_confidence`: its owner may say how
    sure a certificate has to be.
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
        """Whether what one job shows in a configuration is true of the other, as far as the planner's part goes."""
        return type(other) is type(self)


class Setting(Payload):
    """What varies between configurations besides the offer and the number of nodes."""

    __slots__ = ()

    def words(self, machines: str, nodes: int) -> str:
        """The whole configuration in words; `machines`: '3 x c5.xlarge'."""
        return machines

    def suits(self, nodes: int, offer: Offer) -> bool:
        """Whether so many nodes of an offer can be set so."""
        return True


class Billing(Payload):
    """How a cloud counts costs. `metered`: whoever runs it counts what is used, and never exceeds what is allowed."""

    __slots__ = ()
    metered: ClassVar[bool] = False

    def usd_per_hour(self, nodes_usd_per_hour: float) -> float:
        """Of the nodes, and of what is rented beside them."""
        return nodes_usd_per_hour

    def usd(self, nodes_usd_per_hour: float, seconds: float) -> float:
        """What holding the nodes for so long costs, if nothing has to be repeated."""
        return self.usd_per_hour(nodes_usd_per_hour) * seconds / 3_600

    def worst_usd(self, nodes_usd_per_hour: float, seconds: float) -> float:
        """The same if all is repeated that may be repeated."""
        return self.usd(nodes_usd_per_hour, seconds)


class Work(Payload):
    """What a launch is to do, where that is not simply the job."""

    __slots__ = ()


class Evidence(Payload):
    """What a launch has shown besides its rate."""

    __slots__ = ()

    def pooled(self, other: Self) -> Self:
        """Of two measurements of one configuration."""
        return self


class Plan(Payload):
    """What was decided, beyond a configuration."""

    __slots__ = ()


class Easing(Payload):
    """What would have to be asked instead, where that is not a larger budget or a later deadline."""

    __slots__ = ()


def _write(payload: Payload) -> dict[str, Any]:
    # By way of JSON: what has no end is a word there, whatever the document around it does with such numbers.
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

    # In a tuple, since pydantic takes no configuration for a dataclass by itself.
    return TypeAdapter(tuple[_KINDS[kind]], config=ConfigDict(ser_json_inf_nan="strings"))  # type: ignore[valid-type]


@cache
def _import_planner(name: str) -> None:
    """Import the nouns of a planner, ours or another package's, so that its kinds are known."""
    try:
        import_module(f"{PLANNERS}.{name}.nouns")
    except ModuleNotFoundError:
        from importlib.metadata import entry_points

        for planner in entry_points(group=PLANNERS, name=name):
            planner.load()


def upgraded(value: Any) -> Any:
    """JSON that was written before payloads had kinds, as it is written today."""
    return import_module(f"{PLANNERS}.old_formats").upgraded(value)
