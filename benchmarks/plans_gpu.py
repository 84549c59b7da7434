"""Training plans of one language model, measured on this GPU: time, memory, and which run out of memory.

    python3 benchmarks/plans_gpu.py FOLDER                            # ten plans, a minute on an H200
    python3 benchmarks/plans_gpu.py FOLDER --size 8b                  # of Llama 3.1 8B; 3b and 1b: of Llama 3.2
    python3 benchmarks/plans_gpu.py FOLDER --plans 23 --within 220    # start no plan that would end later
    python3 benchmarks/plans_gpu.py FOLDER --size tiny --plans 3      # to try it on a machine without a GPU
    mlcd bench plans FOLDER                                           # the choice by forecasts, beside measuring all

The model is a Llama of one to eight billion weights, drawn on the GPU. It is trained in full, or by an adapter of
rank 16 beside the four projections of each attention, with a fixed 64 sequences a step. A plan is built; two steps
warm up; four micro-steps and an optimizer step are timed. A step takes accumulation x micro-step + optimizer.

FOLDER/plans.jsonl has a plan a line, written as it ends; stored ones are not repeated. FOLDER/plans.csv has the same in
the columns that `mlcd bench plans` reads. Memory is in 10^9 bytes, allocated and reserved.

This file needs PyTorch and transformers, and nothing of MLCD: it runs on a machine that has only these.
"""

from __future__ import annotations

import argparse
import csv
import gc
import json
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, astuple, dataclass
from datetime import UTC, datetime
from math import inf
from pathlib import Path

import torch
import transformers
from torch import nn

SIZES = {
    "2b": {"layers": 24, "hidden": 2_560, "heads": 20, "kv_heads": 4, "ffn": 6_912, "vocab": 64_000, "seq": 2_048},
    "8b": {"layers": 32, "hidden": 4_096, "heads": 32, "kv_heads": 8, "ffn": 14_336, "vocab": 128_256, "seq": 2_048},
    "3b": {"layers": 28, "hidden": 3_072, "heads": 24, "kv_heads": 8, "ffn": 8_192, "vocab": 128_256, "seq": 4_096},
    "1b": {"layers": 16, "hidden": 2_048, "heads": 32, "kv_heads": 8, "ffn": 8_192, "vocab": 128_256, "seq": 1_024},
    "tiny": {"layers": 2, "hidden": 64, "heads": 4, "kv_heads": 2, "ffn": 192, "vocab": 512, "seq": 64},
}
"""The sizes of Llama 3.1 8B, 3.2 3B and 3.2 1B, with their own output layer; of a 2B; and a tiny one for tests."""
SEQUENCES, LORA_RANK, SEED = 64, 16, 0
WARM_UP, TIMED = 2, 4
ADAPTED = ("q_proj", "k_proj", "v_proj", "o_proj")
USD_PER_GPU_HOUR = 7.912
"""AWS p5en.48xlarge, us-east-1, list price of August 2026, divided by 8."""
PEAK_FLOPS = 989.5e12
"""An H200, dense bf16, by the vendor's datasheet."""
FIRST_PLAN_S, LONGER, PLANS_ALIKE = 40.0, 1.5, 4
"""Assumed seconds of the first plans; a later one may take so many times the longest of the last few."""
COLUMNS = (
    "source,model,params,active_params,layers,hidden,heads,kv_heads,ffn,vocab,seq,gpu_type,gpus,gpus_per_node,nodes,"
    "tp,pp,dp,cp,ep,sharding,micro_batch,accumulation,global_batch,checkpointing,adapter,trainable_params,precision,"
    "attention,kernels,outcome,iteration_s,tokens_per_s_per_gpu,mfu,peak_memory_gb,peak_allocated_gb,usd_per_gpu_hour,"
    "evidence,micro_step_s,optimizer_s,static_gb"
)


@dataclass(frozen=True)
class Plan:
    """`pure`: weights, gradients and Adam in bf16; else in fp32, with arithmetic in bf16 (amp)."""

    adapter: str
    micro_batch: int
    checkpointing: str
    pure: bool = True

    @property
    def precision(self) -> str:
        return "pure_bf16" if self.pure else "amp_bf16"


PLANS = (
    Plan("full", 4, "none"), Plan("lora", 8, "none"), Plan("full", 16, "full"), Plan("full", 4, "none", pure=False),
    Plan("lora", 16, "none"), Plan("full", 8, "none"), Plan("lora", 16, "full"), Plan("full", 1, "none"),
    Plan("full", 8, "none", pure=False), Plan("lora", 2, "none"),
    # Ten more, so that the choice is not among few.
    Plan("full", 16, "none"), Plan("lora", 4, "none"), Plan("full", 4, "full"), Plan("full", 16, "full", pure=False),
    Plan("lora", 32, "full"), Plan("full", 2, "none"), Plan("lora", 1, "none"), Plan("full", 32, "full"),
    Plan("full", 1, "none", pure=False), Plan("lora", 4, "full"),
    # And three that want more memory than a GPU of 141 GB has.
    Plan("full", 32, "none"), Plan("lora", 32, "none"), Plan("full", 16, "none", pure=False),
)  # fmt: skip


class LowRank(nn.Module):
    """A frozen layer with an adapter beside it: W x + up(down(x))."""

    def __init__(self, frozen: nn.Linear) -> None:
        super().__init__()
        like = {"device": frozen.weight.device, "dtype": frozen.weight.dtype}
        self.frozen = frozen
        self.down = nn.Linear(frozen.in_features, LORA_RANK, bias=False, **like)
        self.up = nn.Linear(LORA_RANK, frozen.out_features, bias=False, **like)
        nn.init.zeros_(self.up.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.frozen(x) + self.up(self.down(x))


@dataclass(frozen=True)
class Figures:
    """Seconds of the timed micro-steps and of the optimizer; memory if the device reports it."""

    micro_steps_s: tuple[float, ...]
    optimizer_s: float
    static_gb: float | None
    allocated_gb: float | None
    reserved_gb: float | None


@dataclass(frozen=True)
class Bench:
    size: str
    device: torch.device

    @property
    def config(self) -> transformers.LlamaConfig:
        wanted = SIZES[self.size]
        return transformers.LlamaConfig(
            num_hidden_layers=wanted["layers"], hidden_size=wanted["hidden"], intermediate_size=wanted["ffn"],
            num_attention_heads=wanted["heads"], num_key_value_heads=wanted["kv_heads"], vocab_size=wanted["vocab"],
            max_position_embeddings=wanted["seq"], tie_word_embeddings=False, use_cache=False,
        )  # fmt: skip

    def model(self, plan: Plan) -> nn.Module:
        torch.manual_seed(SEED)
        kind = torch.bfloat16 if plan.pure else torch.float32
        with self.device:
            model = transformers.AutoModelForCausalLM.from_config(self.config, dtype=kind, attn_implementation="sdpa")
        if plan.adapter == "lora":
            model.requires_grad_(False)
            for layer in model.model.layers:
                for name in ADAPTED:
                    setattr(layer.self_attn, name, LowRank(getattr(layer.self_attn, name)))
        if plan.checkpointing == "full":
            model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        return model.train()

    def measure(self, plan: Plan) -> tuple[Figures | None, int]:
        """The figures, None if out of memory; and the number of trained parameters."""
        trained = 0
        try:
            model = self.model(plan)
            weights = [each for each in model.parameters() if each.requires_grad]
            trained = sum(each.numel() for each in weights)
            return self._figures(plan, model, weights), trained
        except torch.OutOfMemoryError:
            return None, trained

    def _figures(self, plan: Plan, model: nn.Module, weights: list[nn.Parameter]) -> Figures:
        gpu = self.device.type == "cuda"
        optimizer = torch.optim.AdamW(weights, lr=1e-5, fused=gpu)
        vocab, seq = SIZES[self.size]["vocab"], SIZES[self.size]["seq"]
        tokens = torch.randint(vocab, (plan.micro_batch, seq), device=self.device)

        def micro_step() -> float:
            with self.stopwatch() as took, torch.autocast(self.device.type, torch.bfloat16, enabled=not plan.pure):
                model(input_ids=tokens, labels=tokens).loss.backward()
            return took[0]

        for _ in range(WARM_UP):
            optimizer.zero_grad(set_to_none=True)
            micro_step()
            optimizer.step()
        static = torch.cuda.memory_allocated() / 1e9 if gpu else None
        micro_steps_s = tuple(micro_step() for _ in range(TIMED))  # on top of gradients, as in accumulation
        with self.stopwatch() as optimizer_took:
            optimizer.step()
        peaks = (torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()) if gpu else (None, None)
        allocated_gb, reserved_gb = (None if peak is None else peak / 1e9 for peak in peaks)
        return Figures(micro_steps_s, optimizer_took[0], static, allocated_gb, reserved_gb)

    @contextmanager
    def stopwatch(self) -> Iterator[list[float]]:
        """Seconds of the block, with the GPU's work."""
        took: list[float] = []
        self.wait()
        began_s = time.perf_counter()
        yield took
        self.wait()
        took.append(time.perf_counter() - began_s)

    def wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def forget(self) -> None:
        """Free the last plan's memory."""
        gc.collect()
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()

    def parameters(self) -> int:
        with torch.device("meta"):
            return sum(each.numel() for each in transformers.AutoModelForCausalLM.from_config(self.config).parameters())

    def row(self, plan: Plan, figures: Figures | None, trained: int, gpu_type: str) -> dict[str, object]:
        """The row that `mlcd bench plans` reads."""
        sizes, parameters = SIZES[self.size], self.parameters()
        tokens = SEQUENCES * sizes["seq"]
        known: dict[str, object] = {
            **sizes, "source": "plans_gpu", "model": f"llama-{self.size}", "params": parameters,
            "active_params": parameters, "gpu_type": gpu_type, "gpus": 1, "gpus_per_node": 8, "nodes": 1,
            **dict.fromkeys(("tp", "pp", "dp", "cp", "ep"), 1), "sharding": "none", "micro_batch": plan.micro_batch,
            "accumulation": SEQUENCES // plan.micro_batch, "global_batch": SEQUENCES, "precision": plan.precision,
            "checkpointing": plan.checkpointing, "adapter": plan.adapter, "trainable_params": trained or parameters,
            "attention": "flash", "kernels": "eager", "outcome": "out_of_memory",
            "usd_per_gpu_hour": USD_PER_GPU_HOUR, "evidence": "measured",
        }  # fmt: skip
        if figures is None:
            return known
        micro_step_s = statistics.median(figures.micro_steps_s)
        step_s = SEQUENCES // plan.micro_batch * micro_step_s + figures.optimizer_s
        flops = 6 * parameters + 12 * sizes["layers"] * sizes["hidden"] * sizes["seq"]
        return known | {
            "outcome": "ok", "iteration_s": f"{step_s:.6g}", "tokens_per_s_per_gpu": f"{tokens / step_s:.6g}",
            "mfu": f"{flops * tokens / step_s / PEAK_FLOPS:.4f}", "micro_step_s": f"{micro_step_s:.6f}",
            "optimizer_s": f"{figures.optimizer_s:.6f}", "static_gb": _gb(figures.static_gb),
            "peak_memory_gb": _gb(figures.reserved_gb), "peak_allocated_gb": _gb(figures.allocated_gb),
        }  # fmt: skip


def _gb(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def write_csv(file: Path, rows: list[dict[str, object]]) -> None:
    with file.open("w", newline="", encoding="utf-8") as out:
        table = csv.DictWriter(out, COLUMNS.split(","), restval="", lineterminator="\n")
        table.writeheader()
        table.writerows(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", choices=SIZES, default="2b")
    parser.add_argument("--plans", type=int, default=10, metavar="N", help=f"the first N of {len(PLANS)}; 10")
    parser.add_argument("--within", type=float, default=inf, metavar="SECONDS", help="begin no plan that ends later")
    parser.add_argument("--gpu-type", metavar="NAME", help="what the table calls the GPU; as the driver calls it")
    given = parser.parse_args()
    began_s, took_s = time.perf_counter(), [FIRST_PLAN_S / LONGER]
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    name = torch.cuda.get_device_name() if device.type == "cuda" else "CPU"
    bench, gpu_type = Bench(given.size, device), given.gpu_type or name.removeprefix("NVIDIA ")
    versions = {"torch": torch.__version__, "transformers": transformers.__version__, "device": name}
    print(f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {versions}, {bench.parameters():,} parameters", flush=True)

    given.folder.mkdir(parents=True, exist_ok=True)
    file = given.folder / "plans.jsonl"
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []
    done = {Plan(**line["plan"]) for line in lines if line["size"] == given.size}
    for plan in PLANS[: given.plans]:
        if plan in done:
            continue
        if time.perf_counter() - began_s + LONGER * max(took_s[-PLANS_ALIKE:]) > given.within:
            print("no time for more", flush=True)
            break
        plan_began_s = time.perf_counter()
        bench.forget()
        figures, trained = bench.measure(plan)
        seconds = time.perf_counter() - plan_began_s
        took_s.append(seconds)
        row = bench.row(plan, figures, trained, gpu_type)
        micro_steps_s = list(figures.micro_steps_s) if figures else []
        lines.append({"size": given.size, "plan": asdict(plan), "seconds": seconds, "micro_steps_s": micro_steps_s,
                      **versions, "row": row})  # fmt: skip
        with file.open("a", encoding="utf-8") as out:
            out.write(json.dumps(lines[-1]) + "\n")
        write_csv(given.folder / "plans.csv", [line["row"] for line in lines])
        told = f"{row['iteration_s']} s a step, {row['peak_allocated_gb'] or '-'} GB" if figures else "OUT OF MEMORY"
        print(f"{astuple(plan)}: {told} (took {seconds:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
