"""A small language model with the Hugging Face Trainer, by the plan that MLCD chose: torchrun train.py.

`planned` sets micro-batch, accumulation, checkpointing, sharding and precision. The callback reports progress, and
saves and exits when MLCD asks for it. With `adapter: lora` in the plan, PEFT trains adapters beside frozen weights. The
model is initialised at random from config.json; use AutoModelForCausalLM.from_pretrained for a trained one. The text is
the standard library's source, by bytes.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import torch
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel, Trainer, TrainingArguments, set_seed
from transformers.trainer_utils import get_last_checkpoint

import mlcd_tracker
from mlcd_tracker.plan import Plan
from mlcd_tracker.transformers import Tracker, planned

SEQUENCE = int(os.environ.get("MLCD_SEQUENCE", "64"))
LAYER = "LlamaDecoderLayer"


class Source(torch.utils.data.Dataset):
    """Sequences of the standard library's source."""

    def __init__(self) -> None:
        files = sorted(Path(os.__file__).parent.glob("*.py"))[:40]
        self.text = torch.frombuffer(bytearray(b"".join(file.read_bytes() for file in files)), dtype=torch.uint8)

    def __len__(self) -> int:
        return len(self.text) // SEQUENCE

    def __getitem__(self, i: int) -> dict[str, torch.Tensor]:
        tokens = self.text[i * SEQUENCE : (i + 1) * SEQUENCE].long()
        return {"input_ids": tokens, "labels": tokens}


def model_by(plan: Plan) -> PreTrainedModel:
    """The model in the plan's precision, with adapters if the plan has them (in fp32 unless the precision is pure)."""
    frozen = {"bf16": torch.bfloat16, "fp16": torch.float16} if plan.adapter != "full" else {}
    kind = ({"pure-bf16": torch.bfloat16} | frozen).get(plan.precision, torch.float32)
    with torch.device("cuda" if torch.cuda.is_available() else "cpu"):
        model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(Path(__file__).parent), dtype=kind)
    if plan.adapter == "full":
        return model
    from peft import LoraConfig, get_peft_model

    wanted = LoraConfig(r=plan.lora_rank, target_modules="all-linear", task_type="CAUSAL_LM")
    if plan.checkpointing != "none":
        model.enable_input_require_grads()
    return get_peft_model(model, wanted)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--save-every", type=int, default=25)
    given = parser.parse_args()

    set_seed(0)
    plan = Plan.told(micro_batch=4, global_batch=16, precision="fp32")
    folder = mlcd_tracker.checkpoint_dir()
    by_torchrun = "RANK" in os.environ
    on_cpu = {} if torch.cuda.is_available() else {"use_cpu": True, "ddp_backend": "gloo" if by_torchrun else None}
    arguments = TrainingArguments(
        folder or "out", max_steps=given.steps, learning_rate=3e-3, lr_scheduler_type="constant", seed=0,
        save_strategy="steps" if folder else "no", save_steps=given.save_every, save_total_limit=2,
        logging_steps=1, report_to=[], disable_tqdm=True, **on_cpu, **planned(plan, LAYER),
    )  # fmt: skip
    trainer = Trainer(model_by(plan), arguments, train_dataset=Source(), callbacks=[Tracker()])
    trainer.train(resume_from_checkpoint=get_last_checkpoint(folder) if folder and Path(folder).is_dir() else None)


if __name__ == "__main__":
    main()
