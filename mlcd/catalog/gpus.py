"""Datasheet figures of GPUs, from `gpus.csv`, where each row names its source.

Rates are dense (without sparsity); links are one way. A rate of 0 is not supported or not published. Memory is in GiB
as the driver reports it, which is less than the name says if error correction uses a part of it (GDDR).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from mlcd.core.csv_table import Line, read_table
from mlcd.core.errors import CatalogError, UnknownName

FILE = "gpus.csv"
RATES = ("bf16", "fp8", "fp4", "int8")
"""Precisions with a rate of their own."""
LINKS = ("nvlink_gb_s", "nvlink_gpus", "pcie_gb_s", "network_gb_s")
NUMBERS = ("memory_gb", "bandwidth_gb_s", *(f"tflops_{each}" for each in RATES), *LINKS)
NEEDED = ("memory_gb", "bandwidth_gb_s", "tflops_bf16")
"""Figures that must be more than zero for every GPU."""
WITHOUT_BF16 = ("K80", "M60", "P4", "P100", "V100", "T4")
"""GPUs older than Ampere, and their variants such as V100-PCIE. Their tensor cores, if any, support only fp16."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU. `nvlink_gpus`: how many NVLink joins (1: none). `network_gb_s`: its share of the network between nodes.

    `tflops_fp32`: only for GPUs without TF32; for the others, half of the bf16 rate is used.
    """

    name: str
    memory_gb: float
    bandwidth_gb_s: float
    tflops_bf16: float
    tflops_fp8: float = 0.0
    tflops_fp4: float = 0.0
    tflops_int8: float = 0.0
    nvlink_gb_s: float = 0.0
    nvlink_gpus: float = 1.0
    pcie_gb_s: float = 32.0
    network_gb_s: float = 1.6
    tflops_fp32: float = 0.0

    def tflops(self, precision: str) -> float:
        """The rate of multiplications with weights in this precision.

        Weights in an unsupported precision are unpacked to bf16. TF32 is used for fp32.
        """
        if precision == "fp32":
            return self.tflops_fp32 or self.tflops_bf16 / 2
        own = {"fp8": self.tflops_fp8, "fp4": self.tflops_fp4, "int8": self.tflops_int8}
        return own.get(precision) or self.tflops_bf16

    def has(self, precision: str) -> bool:
        """Whether it supports this precision."""
        if precision == "bf16":
            return self.name.partition("-")[0] not in WITHOUT_BF16
        return precision != "fp8" or self.tflops_fp8 > 0

    def link_gb_s(self, gpus: float) -> float:
        """One-way bandwidth between two of this many GPUs that work together: NVLink if it joins all of them."""
        if gpus <= self.nvlink_gpus and self.nvlink_gb_s:
            return self.nvlink_gb_s
        return self.pcie_gb_s if not self.nvlink_gb_s and gpus <= 8 else self.network_gb_s

    @staticmethod
    def of(name: str, numbers: Mapping[str, float]) -> Gpu:
        """The GPU with these figures; unknown columns are ignored."""
        return Gpu(name, **{each: numbers[each] for each in NUMBERS if each in numbers})


def gpu_named(name: str, own: Mapping[str, Mapping[str, float]] | None = None) -> Gpu:
    """The GPU of this name or alias. `own`: figures by name that take precedence, such as those of a recording."""
    known = known_gpu(name)
    if own and name in own:
        return Gpu.of(known.name if known else name, own[name])
    if known is None:
        raise UnknownName("GPU", name, [*(own or {}), *dict.fromkeys(gpu.name for gpu in known_gpus().values())])
    return known


def known_gpu(name: str) -> Gpu | None:
    """The GPU of this name or alias; None if `gpus.csv` does not have it."""
    return known_gpus().get(_plain(name))


@cache
def known_gpus() -> dict[str, Gpu]:
    """The GPUs of `gpus.csv` by name and alias, in lower case."""
    text = (resources.files(__package__) / FILE).read_text(encoding="utf-8")
    columns = ("name", "aliases", *NUMBERS, "source", "date")
    gpus = {}
    for line in read_table(text, name=f"mlcd/catalog/{FILE}", columns=columns, complain=CatalogError):
        gpu = Gpu.of(line.text("name"), numbers_of(line))
        line.text("source")  # raises if it is empty
        for name in (gpu.name, *filter(None, line.cells["aliases"].split(","))):
            gpus[_plain(name)] = gpu
    return gpus


def numbers_of(line: Line) -> dict[str, float]:
    """The figures of a GPU in a line of a table, as far as it has columns for them."""
    return {each: line.number(each, above_zero=each in NEEDED) for each in NUMBERS if each in line.cells}


def _plain(name: str) -> str:
    return name.lower().replace("-", "_")
