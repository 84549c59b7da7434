"""The keys of a job file for `mlcd train`: the model, its global batch, and the training plan.

They stand in `mlcd:` itself, because a file that names no planner is for this one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationInfo, model_validator

from mlcd.core.job import Hints, Job
from mlcd.planners.jobfile.blocks import Block
from mlcd.planners.jobfile.keys import Size, mistake_at
from mlcd.planners.train.model_keys import ModelKeys
from mlcd.planners.train.nouns import Adapter, PlannedTraining
from mlcd.planners.train.plan_keys import PlanKeys
from mlcd.planners.train.plans.plan_variables import ARGUMENTS
from mlcd.planners.train.plans.run_spec import flops_of_sequence
from mlcd.planners.train.plans.space import possible_plans, why_not

MOST_TRIED = 1_024
"""The largest count that an error message proposes in place of one that does not divide."""
SIMPLE = re.compile(r"[^|;&<>()#\n\\]+|(?:[^|;&<>()#\n\\]|\\\n)+", re.DOTALL)
"""One command, on one line or on several that end in a backslash: arguments can be appended to it."""


class TrainBlock(Block):
    """The `mlcd:` block with the keys of training plans."""

    model: ModelKeys | None = None
    """The model that is trained; its parameters and FLOPs are computed from it."""
    global_batch: Size = None
    """With `plan`: sequences of one step, on all GPUs together."""
    plan: PlanKeys | None = None
    """The settings of a training plan that the script accepts; MLCD chooses them together with the machines."""

    @model_validator(mode="before")
    @classmethod
    def _work_has_a_unit(cls, written: Any) -> Any:
        work = written.get("work") if isinstance(written, dict) else None
        if isinstance(written, dict) and isinstance(model := written.get("model"), str):
            way = "`model: {config: config.json}`"
            raise mistake_at(("model",), f"model '{model}': expected keys below it, such as {way}")
        if isinstance(written, dict) and written.get("model") and isinstance(work, str | int | float):
            ways = f"`work: {{tokens: {work}}}`, or `{{samples: {work}}}` if sequences are meant"
            raise mistake_at(("work",), f"work '{work}': tokens or sequences? Say {ways}")
        return written

    @model_validator(mode="after")
    def _check_plan_and_model(self, info: ValidationInfo) -> TrainBlock:
        if self.global_batch and self.batch and self.global_batch != self.batch:
            both = f"batch {self.batch:.0f} and global_batch {self.global_batch} are the same thing"
            raise mistake_at(("global_batch",), f"{both}: leave one out")
        if self.plan is None:
            return self
        for name, example in (("model", "{config: config.json}"), ("global_batch", "256"), ("sequence", "4096")):
            if getattr(self, name) is None:
                raise mistake_at(("plan",), f"plan: `{name}` is missing beside it; say `{name}: {example}`")
        task = (info.context or {}).get("task") or {}
        self.plan.check_task(task)
        self._check_values()
        if any(block.argument for block in self.plan.blocks.values()) and _with_arguments(task) is None:
            how = f"`run` is more than one command; write ${ARGUMENTS} where the arguments belong"
            raise mistake_at(("plan",), f"plan: {how}, as in `torchrun train.py ${ARGUMENTS}`")
        return self

    def _check_values(self) -> None:
        """Check that each knob has a value that suits the model, and that some combination of values does."""
        training = self.training
        if training is None or self.plan is None:
            return
        alone = replace(training.fixed, micro_batch=1, tensor=1, pipeline=1, context=1, expert=1)
        for field, block in self.plan.blocks.items():
            reasons = [why_not(alone.having(**{field: value}), training) for value in block.values]
            if None not in reasons:
                most = min(max(map(int, block.values)), MOST_TRIED)  # only counts can fail, never words
                if "does not divide" not in str(reasons[0]):
                    raise mistake_at(("plan", field), str(reasons[0]))
                smaller = range(most, 0, -1)
                fits = next(n for n in smaller if why_not(alone.having(**{field: n}), training) is None)
                raise mistake_at(("plan", field), f"{reasons[0]}; one that does: {fits}")
        if not possible_plans(training):
            raise mistake_at(("plan",), "plan: no combination of these values suits the model and its batch")

    @property
    def training(self) -> PlannedTraining | None:
        """The training task for the planner; None without a plan."""
        plan, model = self.plan, self.model
        if plan is None or model is None or self.sequence is None or self.global_batch is None:
            return None
        knobs = tuple(knob for knob in plan.knobs if len(knob.values) > 1 or knob.env or knob.argument)
        return PlannedTraining(
            model.architecture,
            self.sequence,
            self.global_batch,
            knobs,
            replace(plan.fixed, global_batch=self.global_batch),
            (plan.adapter.rank if plan.adapter else None) or PlannedTraining.lora_rank,
            plan.tensor.across_nodes if plan.tensor else False,
        )

    def job(self, name: str, task: Mapping[str, Any], folder: Path) -> Job:
        """The job; hints that the file leaves out are computed from its model."""
        job = super().job(name, task, folder)
        job = replace(job, hints=self._hints(job.hints))
        training = self.training
        if training is None:
            return job
        if any(knob.argument for knob in training.knobs):
            job = replace(job, task={**task, "run": _with_arguments(task)})
        return replace(job, ask=job.ask or training, blocks={**job.blocks, training.planner: training})

    def _hints(self, written: Hints) -> Hints:
        batch = written.global_batch or self.global_batch
        if self.model is None:
            return replace(written, global_batch=batch)
        model = self.model.architecture
        adapter = self.plan.adapter.values[0] if self.plan and self.plan.adapter else Adapter.FULL
        flops = flops_of_sequence(model, self.sequence, Adapter(adapter)) if self.sequence else None
        return replace(
            written,
            parameters=written.parameters or model.params_b * 1e9,
            flops_per_sample=written.flops_per_sample or flops,
            global_batch=batch,
        )


def _with_arguments(task: Mapping[str, Any]) -> str | None:
    """The command with a place for the arguments; None if that place is not clear."""
    run = str(task.get("run") or "")
    if ARGUMENTS in run:
        return run
    command = run.strip()
    return f"{command} ${ARGUMENTS}\n" if SIMPLE.fullmatch(command) else None
