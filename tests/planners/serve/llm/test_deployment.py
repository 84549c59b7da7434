"""Knobs are read as a deployment; omitted ones are filled in so that the GPUs add up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcd.planners.serve.llm.deployment import Deployment, deployment
from mlcd.planners.serve.nouns import Knobs

few = st.sampled_from([1, 2, 4, 8])


@pytest.mark.parametrize(
    ("knobs", "read"),
    [
        ((("gpu", "L4"),), Deployment("L4")),
        ((("gpu", "H100"), ("gpus", 8)), Deployment("H100", 8, tp=8)),
        ((("gpu", "H100"), ("gpus", 8), ("tp", 2)), Deployment("H100", 8, tp=2, decode_workers=4)),
        ((("gpu", "H100"), ("tp", 4), ("pp", 2)), Deployment("H100", 8, tp=4, pp=2)),
        ((("threads", 4), ("kv_cache_gb", 2)), Deployment(threads=4, kv_cache_gb=2.0)),
        ((("gpu", "L4"), ("colour", "red")), Deployment("L4", rest=(("colour", "red"),))),
        ((("gpu", "L4"), ("sweep", "1 8 64")), Deployment("L4", sweep=(1, 8, 64))),
    ],
)
def test_omitted_knobs_have_defaults(knobs: Knobs, read: Deployment) -> None:
    assert deployment(knobs) == read


@given(few, few, st.integers(1, 4), st.integers(1, 3), few)
def test_a_split_deployment_counts_the_gpus_of_both_kinds_of_workers(
    tp: int, dp: int, decoders: int, prefillers: int, prefill_tp: int
) -> None:
    knobs = (("gpu", "H200"), ("mode", "disagg"), ("tp", tp), ("dp", dp), ("decode_workers", decoders),
             ("prefill_workers", prefillers), ("prefill_tp", prefill_tp))  # fmt: skip
    read = deployment(knobs)
    assert read.split
    assert read.gpus == tp * dp * decoders + prefill_tp * prefillers


@given(few, few, few)
def test_the_gpus_of_all_workers_are_those_of_the_deployment(workers: int, tp: int, dp: int) -> None:
    read = deployment((("gpu", "L4"), ("gpus", workers * tp * dp), ("tp", tp), ("dp", dp)))
    assert read.decode_workers * read.worker_gpus == read.gpus


def test_the_jobs_engine_stands_in_for_a_knob() -> None:
    assert deployment((("gpu", "L4"),), "vllm").engine == "vllm"
    assert deployment((("gpu", "L4"), ("engine", "sglang")), "vllm").engine == "sglang"
