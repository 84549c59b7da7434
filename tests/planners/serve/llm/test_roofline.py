"""The roofline model of TPOT and TTFT: textbook values of a step, and the effect of limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcd.catalog.gpus import gpu_named
from mlcd.planners.modeling.architecture import Architecture
from mlcd.planners.serve.llm.deployment import Deployment
from mlcd.planners.serve.llm.nouns import Prompts
from mlcd.planners.serve.llm.roofline import TPOT_TERMS, TTFT_TERMS, LoadPoint, prompt_operations, terms_of

LLAMA_8B = Architecture(8.03, 8.03, 32, 4096, 32, 8, 128, 128256, 131072, 14336, 32, full_layers=32)
EXPERTS = Architecture(
    117.0, 5.1, 36, 2880, 64, 8, 64, 201088, experts=128, experts_per_token=4, expert_hidden=2880, full_layers=36
)
H100 = gpu_named("H100")
CHAT = Prompts(1024, 128)


def point(sizes: Architecture = LLAMA_8B, requests: int = 1, prompts: Prompts = CHAT, **knobs: object):
    return LoadPoint(sizes, Deployment(gpu="H100", **knobs), H100, prompts, requests)  # type: ignore[arg-type]


def tpot(at: LoadPoint) -> dict[str, float]:
    return dict(zip(TPOT_TERMS, terms_of([at]).tpot[0], strict=True))


def ttft(at: LoadPoint) -> dict[str, float]:
    return dict(zip(TTFT_TERMS, terms_of([at]).ttft_columns(np.array([0.01]))[0], strict=True))


def test_a_step_of_one_request_reads_the_weights_once():
    read_s = 2 * (8.03e9 - 128256 * 4096) / (1e9 * H100.bandwidth_gb_s)  # but for the embedding of the first layer
    assert tpot(point())["weights"] == pytest.approx(read_s, rel=0.01)


def test_tensor_parallelism_shares_weights_and_keys_and_brings_exchange():
    one, four = tpot(point(requests=16)), tpot(point(requests=16, gpus=4, tp=4))
    assert four["weights"] == pytest.approx(one["weights"] / 4)
    assert four["keys"] == pytest.approx(one["keys"] / 4)
    assert one["exchange"] == 0 < four["exchange"]


def test_latent_keys_are_read_whole_by_every_gpu():
    latent = replace(LLAMA_8B, latent=576)
    one, four = (tpot(point(latent, 16, gpus=n, tp=n))["keys"] for n in (1, 4))
    assert four == pytest.approx(one)


def test_more_requests_touch_more_experts_up_to_all():
    one, many = (tpot(point(EXPERTS, n))["experts"] for n in (1, 10_000))
    assert one / many == pytest.approx(4 / 128, rel=0.01)


def test_prefill_costs_decode_steps_unless_it_has_separate_workers():
    split = {"mode": "disagg", "prefill_workers": 1, "prefill_tp": 1, "prefill_dp": 1}
    assert tpot(point(requests=8))["prompts"] > 0 == tpot(point(requests=8, **split))["prompts"]


def test_expert_operations_are_separate_terms_and_nothing_is_counted_twice():
    dense, chosen = tpot(point(requests=8)), tpot(point(EXPERTS, requests=8))
    assert dense["expert_operations"] == dense["expert_prompts"] == 0
    peak = 1e12 * H100.tflops("bf16")
    a_token = 2 * 4 * 3 * 36 * 2880 * 2880  # four experts of three matrices in each of 36 layers
    assert chosen["expert_operations"] == pytest.approx(8 * a_token / peak)
    assert chosen["expert_operations"] + chosen["operations"] == pytest.approx(8 * 2e9 * 5.1 / peak)
    whole = prompt_operations(point(EXPERTS, requests=8))
    assert chosen["expert_prompts"] + chosen["prompts"] == pytest.approx(8 / 128 * whole / peak)


def test_requests_beyond_the_admission_limit_wait_for_whole_answers():
    assert ttft(point(requests=16, sequences=16))["place_wait"] == 0
    waited = ttft(point(requests=48, sequences=16))["place_wait"]
    assert waited == pytest.approx(2 * 128 * 0.01)  # two rounds of answers of 128 tokens at 10 ms


def test_ttft_accepts_samples_of_tpot_and_waiting_is_a_share_of_it():
    terms = terms_of([point(requests=n, sequences=4) for n in (1, 4, 32)])
    coefficients, tpot_s = np.array(list(TTFT_TERMS.values())), np.array([[0.01, 0.02, 0.03], [0.1, 0.2, 0.3]])
    samples = terms.log_ttft(coefficients, tpot_s)
    for sample, at in zip(samples, tpot_s, strict=True):
        np.testing.assert_allclose(sample, np.log(terms.ttft_columns(at) @ coefficients))
    share = terms.waiting_share(coefficients, tpot_s[0])
    assert share[0] == share[1] == 0
    assert 0.5 < share[2] < 1


def test_requests_beyond_the_kv_cache_memory_wait():
    long = Prompts(32_000, 128)
    few, many = (ttft(point(requests=n, prompts=long))["memory_wait"] for n in (4, 64))
    assert few == 0 < many


@given(
    requests=st.integers(1, 4096),
    tp=st.sampled_from([1, 2, 4, 8]),
    precision=st.sampled_from(["bf16", "fp8", "fp4"]),
    sizes=st.sampled_from([LLAMA_8B, EXPERTS]),
)
def test_times_are_positive_and_more_load_is_never_faster(requests: int, tp: int, precision: str, sizes: Architecture):
    terms = terms_of([point(sizes, n, gpus=tp, tp=tp, precision=precision) for n in (requests, 2 * requests)])
    assert (terms.tpot >= 0).all()
    assert (terms.tpot[1] >= terms.tpot[0] - 1e-12).all()
    assert (terms.ttft[1] >= terms.ttft[0] - 1e-12).all()
