"""Memory fit: known cases, monotonicity in GPUs and tokens, and learning from failures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcd.catalog.gpus import gpu_named
from mlcd.core.configuration import Choice, Offer, Space
from mlcd.core.errors import UserError
from mlcd.core.history import History
from mlcd.core.measurement import Measurement, Outcome
from mlcd.planners.modeling.architecture import Architecture
from mlcd.planners.serve.llm.deployment import Deployment
from mlcd.planners.serve.llm.memory import chances_to_fit, fit_probabilities, fits, fitting
from mlcd.planners.serve.nouns import ServerSettings

LLAMA_70B = Architecture(70.55, 70.55, 80, 8192, 64, 8, 128, 128_256, 131_072, 28_672, 80, full_layers=80)
LLAMA_8B = Architecture(8.03, 8.03, 32, 4096, 32, 8, 128, 128_256, 131_072, 14_336, 32, full_layers=32)
counts = st.sampled_from([1, 2, 4, 8])


def space(*gpus: tuple[str, int, str]) -> Space:
    """These GPUs, so many of them, in a precision."""
    choices = []
    for name, count, precision in gpus:
        setting = ServerSettings((("gpu", name), ("gpus", count), ("precision", precision)))
        choices.append(Choice(Offer(f"{count} x {name}", float(count), 1.0, 1.0), settings=(setting,)))
    return Space(tuple(choices))


@pytest.mark.parametrize(
    ("sizes", "gpu", "gpus", "precision", "runs"),
    [
        (LLAMA_70B, "H100", 1, "bf16", False),
        (LLAMA_70B, "H100", 2, "bf16", True),
        (LLAMA_70B, "H200", 1, "fp8", True),
        (LLAMA_8B, "T4", 1, "bf16", False),
        (LLAMA_8B, "L4", 1, "bf16", True),
        (LLAMA_8B, "T4", 1, "int4", True),
    ],
)
def test_known_deployments_fit_and_known_failures_do_not(
    sizes: Architecture, gpu: str, gpus: int, precision: str, runs: bool
) -> None:
    deployment = Deployment(gpu, gpus, precision=precision, tp=gpus)
    assert fits(sizes, deployment, gpu_named(gpu), context=4_096).ok is runs


@given(counts, counts, st.integers(1, 32_768), st.integers(1, 64))
def test_it_needs_less_of_a_gpu_with_more_of_them_and_more_with_more_tokens(
    fewer: int, more: int, context: int, sequences: int
) -> None:
    gpu = gpu_named("H100")
    fewer, more = min(fewer, more), max(fewer, more)

    def share(gpus: int, context: int, sequences: int = sequences) -> float:
        return fits(LLAMA_70B, Deployment("H100", gpus, tp=gpus), gpu, context, sequences).share

    assert share(more, context) <= share(fewer, context) <= share(fewer, 2 * context)
    assert share(fewer, context) <= share(fewer, context, 2 * sequences)


def test_the_most_tokens_are_those_that_fill_what_is_left() -> None:
    deployment, gpu = Deployment("H100", 2, tp=2, precision="fp8"), gpu_named("H100")
    most = fits(LLAMA_70B, deployment, gpu, 4_096).most_tokens
    assert fits(LLAMA_70B, deployment, gpu, 4_096, 0.99 * most / 4_096).ok
    assert not fits(LLAMA_70B, deployment, gpu, 4_096, 1.01 * most / 4_096).ok


def test_experts_are_shared_by_data_parallel_gpus_and_attention_is_not() -> None:
    moe = Architecture(30.5, 3.3, 48, 2048, 32, 4, 128, 151_936, experts=128, experts_per_token=8, expert_hidden=768)
    moe, gpu = replace(moe, full_layers=48), gpu_named("H100")
    alone, spread = (fits(moe, Deployment("H100", dp, dp=dp), gpu, 4_096).weights_gb for dp in (1, 4))
    assert alone / 4 < spread < alone / 2


def test_the_fuller_kind_of_worker_counts_in_a_split() -> None:
    gpu = gpu_named("H100")
    split = Deployment("H100", 5, mode="disagg", tp=4, prefill_workers=1, prefill_tp=1, prefill_dp=1)
    assert fits(LLAMA_70B, split, gpu, 4_096).weights_gb == pytest.approx(141.1, rel=0.01)


shares = st.floats(0.2, 3.0)


@given(st.lists(shares, min_size=1, max_size=8), st.lists(shares, max_size=3), st.lists(shares, max_size=3))
def test_fit_probabilities_fall_with_need_and_agree_with_trials(
    asked: list[float], ran: list[float], failed: list[float]
) -> None:
    found = fit_probabilities(np.array(sorted(asked)), ran, failed)
    assert ((found >= 0) & (found <= 1)).all()
    assert (np.diff(found) <= 1e-9).all()
    if ran:
        assert fit_probabilities(np.array([min(ran), max(ran)]), ran, failed) == pytest.approx(1.0)
    if failed and (not ran or min(failed) > max(ran)):
        assert fit_probabilities(np.array([min(failed), 2 * max(failed)]), ran, failed) == pytest.approx(0.0)


def test_out_of_memory_excludes_what_needs_as_much_or_more() -> None:
    asked = space(("L4", 1, "bf16"), ("L4", 1, "fp8"), ("T4", 1, "bf16"), ("H100", 1, "bf16"))
    failed = Measurement(asked.configurations[0], Outcome.OUT_OF_MEMORY, 60.0, 0.1)
    before = chances_to_fit(LLAMA_8B, asked, History(), 4_096)
    after = chances_to_fit(LLAMA_8B, asked, History((failed,)), 4_096)
    assert before[0] > 0.9
    assert after[[0, 2]] == pytest.approx(0.0)
    assert after[[1, 3]] == pytest.approx(1.0, abs=0.02)


def test_a_space_loses_what_cannot_fit() -> None:
    asked = space(("L4", 1, "bf16"), ("H100", 2, "bf16"), ("H100", 8, "bf16"))
    kept = fitting("Llama-70B", LLAMA_70B, asked, 4_096)
    assert [str(each.offer.name) for each in kept.configurations] == ["2 x H100", "8 x H100"]


def test_a_cpu_is_never_refused() -> None:
    setting = ServerSettings((("threads", 4),))
    asked = Space((Choice(Offer("here", 0.1, 4.0, 8.0), settings=(setting,)),))
    assert len(fitting("tiny", LLAMA_8B, asked, 4_096)) == 1


def test_a_model_that_fits_nowhere_is_one_line_with_its_need_and_the_largest_offer() -> None:
    with pytest.raises(UserError, match=r"Llama-70B fits no GPU offered: .*gpu L4, gpus 4.* GB of") as refused:
        fitting("Llama-70B", LLAMA_70B, space(("L4", 1, "bf16"), ("L4", 4, "bf16"), ("T4", 1, "bf16")), 4_096)
    assert "\n" not in str(refused.value)
