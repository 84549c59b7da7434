"""For the Hugging Face Trainer: it takes the plan from MLCD, reports, and leaves when it is wanted elsewhere.

    plan = Plan.told(micro_batch=4, global_batch=64)        # MLCD's choice; these outside MLCD
    arguments = TrainingArguments(output_dir, **planned(plan))
    Trainer(model, arguments, ..., callbacks=[Tracker()]).train()

`Tracker` alone is enough for a script that keeps its own batch.
"""

from __future__ import annotations

import os
from typing import Any

import transformers

import mlcd_tracker
from mlcd_tracker.plan import Plan
from mlcd_tracker.pytorch_leaving import Leaving


class Tracker(transformers.TrainerCallback):
    """Reports every step and every checkpoint; the trainer knows how many samples a step takes.

    `metric`: what of an evaluation tells how good the job is, such as `eval_loss`; its target ends the training.
    Before the job leaves, the trainer saves.
    """

    def __init__(self, metric: str = "") -> None:
        self._metric, self._leaving = metric, Leaving()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """A step is done, on all workers."""
        mlcd_tracker.step(args.train_batch_size * args.gradient_accumulation_steps * args.world_size)
        if self._leaving.now():
            control.should_save = control.should_training_stop = True

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Any = None, **_: Any) -> None:
        """The model was evaluated, with the same outcome in all workers."""
        if self._metric in (metrics or {}) and mlcd_tracker.metric(float(metrics[self._metric])):
            control.should_save = control.should_training_stop = True

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """A checkpoint is on disk."""
        mlcd_tracker.saved()


def planned(plan: Plan, wrap: str = "") -> dict[str, Any]:
    """What TrainingArguments takes of a plan: batch and accumulation, checkpointing, precision, and FSDP2 for sharding.

    `wrap`: the class of layers that are sharded one by one, such as LlamaDecoderLayer; the model's choice if not given.
    Weights are in the precision that the script loads them in: for `pure-bf16`, and for `bf16` where an adapter is
    trained, that has to be bf16.
    """
    if apart := [name for name in ("tensor", "pipeline", "context") if getattr(plan, name) > 1]:
        raise ValueError(f"{apart[0]} {getattr(plan, apart[0])}: not among what this sets; take it out of `plan:`")
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
    """As torchrun tells: the process group is not there yet."""
    return int(os.environ.get("WORLD_SIZE", "1"))
