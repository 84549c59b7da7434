"""The `infer:` block of a job file."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator

from mlcd.planners.jobfile.keys import PlannerBlock, Work
from mlcd_infer.nouns import InferenceTask


def parse_chunks(written: Any) -> tuple[int, ...]:
    """'8,32,128', [8, 32], or one number."""
    parts = written if isinstance(written, list) else str(written).split(",")
    if not all(str(part).strip().isdigit() and int(part) > 0 for part in parts):
        raise ValueError(f"'{written}': expected items in a chunk, such as 8,32,128")
    return tuple(sorted({int(part) for part in parts}))


class InferBlock(PlannerBlock):
    """What may vary."""

    chunks: Annotated[tuple[int, ...], BeforeValidator(parse_chunks)] = InferenceTask().chunks

    def ask(self, work: Work) -> InferenceTask:
        """As the planner knows it."""
        return InferenceTask(self.chunks)
