"""The keys under `plan:` of a job file: the settings a script accepts, their values, and how they reach the script."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from math import prod
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, ConfigDict, WithJsonSchema, model_validator

from mlcd.core.units import parse_batches, parse_flag, parse_one_of
from mlcd.planners.jobfile.keys import Keys, Size, listed, mistake_at, or_alone, read
from mlcd.planners.train.nouns import Adapter, Checkpointing, PlanKnob, Precision, Sharding, TrainingPlan
from mlcd.planners.train.plans.plan_variables import OWN

DEFAULT = TrainingPlan()
MOST_PLANS = 5_000
"""Most combinations of values: each is combined with every instance type and number of nodes that suit it."""


def _name(written: Any) -> str:
    if not re.fullmatch(r"[A-Za-z_]\w*", str(written)):
        raise ValueError(f"'{written}': expected the name of a variable, such as TP")
    return str(written)


def _argument(written: Any) -> str:
    if not re.fullmatch(r"-[\w.+/-]+=?|[\w.+/-]+=", str(written)):
        raise ValueError(f"'{written}': expected an argument, such as --micro-batch or train.micro_batch=")
    return str(written)


def _word(written: Any) -> str:
    """The script's word for a value; a YAML boolean counts as the word that was written."""
    text = str(written).lower() if isinstance(written, bool) else str(written)
    if not re.fullmatch(r"[\w.+/:@%,-]+", text):
        raise ValueError(f"'{written}': expected one word for the script, without blanks or quotes")
    return text


def _counts(written: Any) -> tuple[int, ...]:
    """8; [1, 2, 4]; 1..16, which is doubled."""
    return tuple(dict.fromkeys(count for each in listed(written) for count in parse_batches(each)))


def _words(kind: type[StrEnum]) -> Callable[[Any], tuple[str, ...]]:
    return lambda written: tuple(dict.fromkeys(kind(_one_word(each, kind)) for each in listed(written)))


def _one_word(written: Any, kind: type[StrEnum]) -> str:
    if isinstance(written, bool):
        read = "no, off and false" if not written else "yes, on and true"
        raise ValueError(f"YAML reads {read} as a boolean, not a word; say one of {', '.join(kind)}")
    return parse_one_of(written, kind)


COUNT = {"type": ["integer", "string"]}
Counts = Annotated[
    tuple[int, ...],
    BeforeValidator(_counts),
    WithJsonSchema({"anyOf": [COUNT, {"type": "array", "items": COUNT}, {"type": "object"}]}),
]


class KnobKeys(Keys):
    """One field of a plan: its values, and the environment variable or argument that passes it to the script."""

    model_config = ConfigDict(json_schema_extra=or_alone(lambda block: dict(block["properties"]["values"])))

    default: ClassVar[int | str] = 1
    env: Annotated[str | None, read(_name)] = None
    """The environment variable that passes it to the script."""
    argument: Annotated[str | None, read(_argument)] = None
    """The argument that passes it to the script, such as --micro-batch."""
    told: tuple[Annotated[str, BeforeValidator(_word)], ...] = ()
    """The script's own word for each of the values."""
    values: tuple[int | str, ...]
    """What may be chosen: one, a list, or each with the script's own word for it."""

    @model_validator(mode="before")
    @classmethod
    def _normalize_values(cls, written: Any) -> Any:
        """Accept values without a block, and a mapping of values to the script's own words."""
        block = dict(written) if isinstance(written, dict) else {"values": written}
        if isinstance(values := block.get("values"), dict):
            block |= {"values": list(values), "told": list(values.values())}
        return block

    @model_validator(mode="after")
    def _check_values_and_channel(self) -> KnobKeys:
        if not self.values:
            raise ValueError("values: name at least one")
        if self.env and self.argument:
            raise ValueError("pass it to the script by a variable (`env`) or by an argument (`argument`), not by both")
        if self.told and len(self.told) != len(self.values):
            raise ValueError(f"told: {len(self.told)} words for {len(self.values)} values; name one for each")
        return self

    def knob(self, field: str) -> PlanKnob:
        """The block as a `PlanKnob`."""
        values = tuple(value if isinstance(value, int) else str(value) for value in self.values)
        return PlanKnob(field, values, self.env or "", self.argument or "", self.told)


class CountKnob(KnobKeys):
    """A number of GPUs, or of sequences."""

    values: Counts
    """What may be chosen: 8; [1, 2, 4]; 1..8, which is doubled; or each with the script's own word for it."""


class TensorKnob(CountKnob):
    """GPUs that share a layer; within a node unless `across_nodes` is true."""

    across_nodes: Annotated[bool, BeforeValidator(parse_flag)] = False
    """Whether it may span nodes."""


class ShardingKnob(KnobKeys):
    """What is sharded over the data-parallel ranks."""

    values: Annotated[tuple[Sharding, ...], BeforeValidator(_words(Sharding))]
    """What may be chosen: one, a list, or each with the script's own word for it."""


class CheckpointingKnob(KnobKeys):
    """Which activations are recomputed in the backward pass."""

    values: Annotated[tuple[Checkpointing, ...], BeforeValidator(_words(Checkpointing))]
    """What may be chosen: one, a list, or each with the script's own word for it."""


class PrecisionKnob(KnobKeys):
    """The precision of matrix products."""

    values: Annotated[tuple[Precision, ...], BeforeValidator(_words(Precision))]
    """What may be chosen: one, a list, or each with the script's own word for it."""


class AdapterKnob(KnobKeys):
    """All weights, or an adapter of this `rank`."""

    values: Annotated[tuple[Adapter, ...], BeforeValidator(_words(Adapter))]
    """What may be chosen: one, a list, or each with the script's own word for it."""
    rank: Size = None
    """Rank of the adapter; 16 by default."""

    @model_validator(mode="after")
    def _full_excludes_adapters(self) -> AdapterKnob:
        if Adapter.FULL in self.values and len(self.values) > 1:
            raise ValueError("values: all weights (full) and an adapter train different models; name one of them")
        if Adapter.FULL in self.values and self.rank is not None:
            raise ValueError("rank: full trains all weights and has no adapter; leave it out, or name lora")
        return self


class PlanKeys(Keys):
    """The settings that the script accepts. Defaults: data parallelism only, no sharding, all weights, bf16."""

    micro_batch: CountKnob
    """Sequences that a data-parallel rank takes at once."""
    tensor: TensorKnob | None = None
    """GPUs that share each layer."""
    pipeline: CountKnob | None = None
    """Stages of layers."""
    context: CountKnob | None = None
    """GPUs that share each sequence."""
    expert: CountKnob | None = None
    """GPUs that share the experts."""
    sharding: ShardingKnob | None = None
    """What is sharded over data-parallel ranks: gradients and optimizer (zero2), or the weights, too (zero3)."""
    checkpointing: CheckpointingKnob | None = None
    """Which activations are recomputed in the backward pass."""
    adapter: AdapterKnob | None = None
    """What is trained: all weights (full), or an adapter."""
    precision: PrecisionKnob | None = None
    """Precision of matrix products; weights and optimizer are in fp32 unless it says pure."""

    @property
    def knobs(self) -> tuple[PlanKnob, ...]:
        """The knobs in the order of the fields of a plan."""
        return tuple(block.knob(field) for field, block in self.blocks.items())

    @property
    def blocks(self) -> dict[str, KnobKeys]:
        """The blocks that the file has, by field."""
        written = {field: getattr(self, field) for field in TrainingPlan.__dataclass_fields__ if field in OWN}
        return {field: block for field, block in written.items() if block is not None}

    def check_task(self, task: Mapping[str, Any]) -> None:
        """Refuse what conflicts with the variables and the command of the task."""
        if (count := prod(len(block.values) for block in self.blocks.values())) > MOST_PLANS:
            raise mistake_at(
                ("plan",), f"plan: {count:,} combinations of values; name fewer, {MOST_PLANS:,} at the most"
            )
        used: dict[str, str] = {}
        envs = task.get("envs") if isinstance(task.get("envs"), dict) else {}
        for field, block in self.blocks.items():
            at, channel = ("plan", field), block.env or block.argument
            if len(block.values) > 1 and not channel:
                way = f"`{field}: {{env: {OWN[field]}, values: [{', '.join(map(str, block.values))}]}}`"
                raise mistake_at(at, f"{field}: how does the script learn which value to use? Say, for example, {way}")
            if channel in used:
                raise mistake_at((*at, "env"), f"{field}: '{channel}' already passes {used[channel]}; name another")
            if channel:
                used[channel] = field
            if block.env and block.env in (envs or {}):
                raise mistake_at((*at, "env"), f"{field}: {block.env} is set in `envs:`, too; remove it there")
            if block.env and block.env.startswith("MLCD_") and block.env != OWN[field]:
                raise mistake_at(
                    (*at, "env"), f"{field}: MLCD passes this by {OWN[field]}; name that, or a variable of your own"
                )

    @property
    def fixed(self) -> TrainingPlan:
        """The plan with the first value of each field."""
        return DEFAULT.having(**{field: block.values[0] for field, block in self.blocks.items()})
