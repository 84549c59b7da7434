"""Datasheet figures: every GPU of the catalog that an engine runs on is known, under all names that people write."""

from __future__ import annotations

import pytest

from mlcd.catalog.files import known_accelerators
from mlcd.catalog.gpus import gpu_named, known_gpus
from mlcd.core.errors import UnknownName

TOO_OLD = {"K80"}
"""No engine supports them."""


def test_every_gpu_of_the_catalog_is_known() -> None:
    for name, (_, memory_gb) in known_accelerators().items():
        if name not in TOO_OLD:
            assert 0.9 * memory_gb <= gpu_named(name).memory_gb <= memory_gb


@pytest.mark.parametrize(("alias", "name"), [("h100_sxm", "H100"), ("gb200", "GB200"), ("a100-80gb", "A100-80GB")])
def test_a_gpu_has_other_names(alias: str, name: str) -> None:
    assert gpu_named(alias).name == name


def test_an_unknown_gpu_is_named_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="H100"):
        gpu_named("H1000")


def test_a_recordings_own_numbers_come_first() -> None:
    own = {"h100_sxm": {"memory_gb": 96.0, "bandwidth_gb_s": 4_000.0, "tflops_bf16": 900.0}}
    assert gpu_named("h100_sxm", own).memory_gb == 96.0
    assert gpu_named("H200", own).memory_gb == 141.0


def test_a_precision_that_the_cores_lack_is_computed_in_bf16() -> None:
    h100, b200 = gpu_named("H100"), gpu_named("B200")
    assert h100.tflops("fp4") == h100.tflops("int4") == h100.tflops_bf16
    assert b200.tflops("fp4") == 9_000


def test_gpus_beyond_nvlink_are_joined_by_the_network() -> None:
    h100, l4 = gpu_named("H100"), gpu_named("L4")
    assert h100.link_gb_s(8) == 450
    assert h100.link_gb_s(16) == h100.network_gb_s
    assert l4.link_gb_s(4) == l4.pcie_gb_s


def test_numbers_are_of_a_plausible_size() -> None:
    for gpu in known_gpus().values():
        assert 10 <= gpu.memory_gb <= 400
        assert 200 <= gpu.bandwidth_gb_s <= 10_000
        assert gpu.tflops_fp8 == 0 or gpu.tflops_fp8 == pytest.approx(2 * gpu.tflops_bf16, rel=0.02)
