"""The training plan that MLCD chose for a language model, for scripts whose job file has a `plan:`.

    plan = Plan.told(micro_batch=4, global_batch=64)    # MLCD's choice; these values outside MLCD, or if it sets none
    plan = plan.shared_by(ranks)
    for micro_batch in range(plan.accumulation(ranks)): ...

The words are those of the job file. Needs only Python.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

BATCH = "MLCD_BATCH"
"""The batch of an elastic job, which takes precedence over the fixed one."""


@dataclass(frozen=True)
class Plan:
    """The fields of a training plan. `global_batch`: sequences of an optimizer step, all ranks together.

    `micro_batch`: sequences that a rank takes at once. `precision`: fp32, bf16 and fp16 keep weights in fp32; pure-bf16
    and pure-fp16 do not.
    """

    micro_batch: int = 1
    global_batch: int = 1
    sharding: str = "none"
    checkpointing: str = "none"
    adapter: str = "full"
    precision: str = "bf16"
    lora_rank: int = 16
    tensor: int = 1
    pipeline: int = 1
    context: int = 1

    @classmethod
    def told(cls, environ: Mapping[str, str] = os.environ, **otherwise: int | str) -> Plan:
        """The plan from MLCD's environment variables; fields that it does not set are as in `otherwise`, or default."""
        plan = cls(**otherwise)  # type: ignore[arg-type]
        values = {field.name: getattr(plan, field.name) for field in fields(cls)}
        for name, value in values.items():
            text = environ.get(f"MLCD_{name.upper()}")
            if text is not None:
                values[name] = _count(f"MLCD_{name.upper()}", text) if isinstance(value, int) else text
        if BATCH in environ:
            values["global_batch"] = _count(BATCH, environ[BATCH])
        return cls(**values)

    def shared_by(self, ranks: int) -> Plan:
        """With the largest micro-batch, at most its own, by which so many ranks can share the batch equally.

        An elastic job changes the batch and the ranks. A plan that MLCD chose does not change.
        """
        each = self.global_batch // ranks
        sizes = [size for size in range(min(self.micro_batch, each), 0, -1) if each % size == 0]
        return replace(self, micro_batch=sizes[0]) if sizes and self.global_batch % ranks == 0 else self

    def accumulation(self, ranks: int) -> int:
        """Micro-batches that each of so many ranks accumulates in a step, so that the global batch stays the same."""
        together = ranks * self.micro_batch
        if self.global_batch % together:
            shared = f"{ranks} ranks x micro-batches of {self.micro_batch}"
            raise ValueError(f"a global batch of {self.global_batch} cannot be shared by {shared}")
        return self.global_batch // together


def _count(name: str, text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"{name}={text!r}: expected a whole number, such as 4")
    return int(text)
