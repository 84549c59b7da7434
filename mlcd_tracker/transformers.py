"""For the Hugging Face Trainer: use MLCD's training plan, report progress, and save and leave when MLCD asks for it.

    plan = Plan.told(micro_batch=4, global_batch=64)        # MLCD's choice; these outside MLCD
    arguments = TrainingArguments(output_dir, **planned(plan))
    Trainer(model, arguments, ..., callbacks=[Tracker()]).train()

A script that keeps its own batch needs only `Tracker`.
"""

from __future__ import annotations

import os
from typing import Any

import transformers

import mlcd_tracker
from mlcd_tracker.plan import Plan
from mlcd_tracker.pytorch_leaving import Leaving


class Tracker(transformers.TrainerCallback):
    """Report every step and every checkpoint; the trainer knows how many samples a step has.

    `metric`: name of the job's metric in an evaluation, such as `eval_loss`; reaching its target ends the training.
    The trainer saves before the job leaves.
    """

    def __init__(self, metric: str = "") -> None:
        self._metric, self._leaving = metric, Leaving()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Report a step of all workers; save and stop if MLCD asks for it."""
        mlcd_tracker.step(args.train_batch_size * args.gradient_accumulation_steps * args.world_size)
        if self._leaving.now():
            control.should_save = control.should_training_stop = True

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Any = None, **_: Any) -> None:
        """Report the metric, which is the same in all workers; save and stop if it reached its target."""
        if self._metric in (metrics or {}) and mlcd_tracker.metric(float(metrics[self._metric])):
            control.should_save = control.should_training_stop = True

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Report a checkpoint."""
        mlcd_tracker.saved()


def planned(plan: Plan, wrap: str = "") -> dict[str, Any]:
    """Arguments of TrainingArguments for a plan: batch, accumulation, checkpointing, precision, and FSDP2 for sharding.

    `wrap`: the class of layers that are sharded one by one, such as LlamaDecoderLayer; the model's choice if not given.
    Weights keep the precision in which the script loads them. Load them in bf16 for `pure-bf16`, and for `bf16` with an
    adapter.
    """
    if unsupported := [name for name in ("tensor", "pipeline", "context") if getattr(plan, name) > 1]:
        name = unsupported[0]
        raise ValueError(f"{name} {getattr(plan, name)}: the Trainer's arguments cannot set it; remove it from `plan:`")
    plan = plan.shared_by(_workers())
    checkpointed = plan.checkpointing != "none"
    arguments: dict[str, Any] = {
        "per_device_train_batch_size": plan.micro_batch,
        "gradient_accumulation_steps": plan.accumulation(_workers()),
        "bf16": plan.precision == "bf16",
        "fp16": plan.precision == "fp16",
    }
    if plan.sharding != "none":
        sharding: dict[str, Any] = {"version": 2, "reshard_after_forward": plan.sharding == "zero3"}
        sharding |= {"transformer_layer_cls_to_wrap": [wrap]} if wrap else {}
        return arguments | {"fsdp": True, "fsdp_config": {**sharding, "activation_checkpointing": checkpointed}}
    if checkpointed:
        again = {"use_reentrant": False}
        return arguments | {"gradient_checkpointing": True, "gradient_checkpointing_kwargs": again}
    return arguments


def _workers() -> int:
    """The number of workers by torchrun's variable: the process group does not exist yet."""
    return int(os.environ.get("WORLD_SIZE", "1"))
