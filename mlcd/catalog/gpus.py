"""What a GPU can do by its datasheet: `gpus.csv`, in which each row names its source.

Rates are dense (without sparsity), links are one way. A rate of 0 is one that the GPU does not have or nobody states.
Memory is in GiB as the driver reports it, less than the name says where error correction takes a part of it (GDDR).
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
"""Precisions that have a rate of their own."""
LINKS = ("nvlink_gb_s", "nvlink_gpus", "pcie_gb_s", "network_gb_s")
NUMBERS = ("memory_gb", "bandwidth_gb_s", *(f"tflops_{each}" for each in RATES), *LINKS)
NEEDED = ("memory_gb", "bandwidth_gb_s", "tflops_bf16")
"""What must be more than zero of every GPU."""
WITHOUT_BF16 = ("K80", "M60", "P4", "P100", "V100", "T4")
"""GPUs older than Ampere, whose tensor cores, if any, multiply fp16 alone; and their variants, such as V100-PCIE."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU. `nvlink_gpus`: how many are joined by NVLink (1: none); `network_gb_s`: its share between machines.

    `tflops_fp32`: of those without TF32, which has half of the rate in bf16.
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
        """Of multiplications with weights in this precision.

        Weights that the tensor cores do not multiply are unpacked to bf16 first. TF32 stands for fp32.
        """
        if precision == "fp32":
            return self.tflops_fp32 or self.tflops_bf16 / 2
        own = {"fp8": self.tflops_fp8, "fp4": self.tflops_fp4, "int8": self.tflops_int8}
        return own.get(precision) or self.tflops_bf16

    def has(self, precision: str) -> bool:
        """Whether it multiplies in this precision."""
        if precision == "bf16":
            return self.name.partition("-")[0] not in WITHOUT_BF16
        return precision != "fp8" or self.tflops_fp8 > 0

    def link_gb_s(self, gpus: float) -> float:
        """One way between two of so many GPUs that work together: NVLink while it joins them all."""
        if gpus <= self.nvlink_gpus and self.nvlink_gb_s:
            return self.nvlink_gb_s
        return self.pcie_gb_s if not self.nvlink_gb_s and gpus <= 8 else self.network_gb_s

    @staticmethod
    def of(name: str, numbers: Mapping[str, float]) -> Gpu:
        """From the numbers of a table; those that it does not know are left out."""
        return Gpu(name, **{each: numbers[each] for each in NUMBERS if each in numbers})


def gpu_named(name: str, own: Mapping[str, Mapping[str, float]] | None = None) -> Gpu:
    """The GPU of that name or alias. `own`: numbers by name that come first, such as those of a recording."""
    found = known_gpu(name)
    if own and name in own:
        return Gpu.of(found.name if found else name, own[name])
    if found is None:
        raise UnknownName("GPU", name, [*(own or {}), *dict.fromkeys(gpu.name for gpu in known_gpus().values())])
    return found


def known_gpu(name: str) -> Gpu | None:
    """The GPU of that name or alias; None where the table does not have it."""
    return known_gpus().get(_plain(name))


@cache
def known_gpus() -> dict[str, Gpu]:
    """By name and by each alias, in small letters."""
    text = (resources.files(__package__) / FILE).read_text(encoding="utf-8")
    columns = ("name", "aliases", *NUMBERS, "source", "date")
    found = {}
    for line in read_table(text, name=f"mlcd/catalog/{FILE}", columns=columns, complain=CatalogError):
        gpu = Gpu.of(line.text("name"), numbers_of(line))
        line.text("source")  # each needs one
        for name in (gpu.name, *filter(None, line.cells["aliases"].split(","))):
            found[_plain(name)] = gpu
    return found


def numbers_of(line: Line) -> dict[str, float]:
    """The numbers of a GPU in a line of a table, as far as it has columns for them."""
    return {each: line.number(each, above_zero=each in NEEDED) for each in NUMBERS if each in line.cells}


def _plain(name: str) -> str:
    return name.lower().replace("-", "_")
