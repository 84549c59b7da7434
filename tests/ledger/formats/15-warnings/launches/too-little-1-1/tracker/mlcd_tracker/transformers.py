"""For the Hugging Face Trainer: Trainer(..., callbacks=[Tracker()])."""

from __future__ import annotations

from typing import Any

import transformers

import mlcd_tracker


class Tracker(transformers.TrainerCallback):
    """Reports every step and every checkpoint; the trainer knows how many samples a step takes."""

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """A step is done, on all workers."""
        mlcd_tracker.step(args.train_batch_size * args.gradient_accumulation_steps * args.world_size)

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """A checkpoint is on disk."""
        mlcd_tracker.saved()
