"""The operators of PyTorch modules, on the CPU."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from mlcd.planners.serve.model_facts import Operator
from mlcd.planners.serve.operators import key_operators, parts
from mlcd_bench.learn.torch_profile import profile_torch, read_pass

pytestmark = pytest.mark.night  # measures in small what takes hours

torch = pytest.importorskip("torch", reason="pip install 'mlcd[frameworks]'")


def test_a_convolution_is_the_key_operator_of_a_cnn() -> None:
    module = torch.nn.Sequential(
        torch.nn.Conv2d(3, 32, 3),
        torch.nn.ReLU(),
        torch.nn.Conv2d(32, 32, 3),
        torch.nn.Flatten(),
        torch.nn.Linear(32 * 28 * 28, 4),
    )
    profile = profile_torch(module, lambda batch: (torch.zeros(batch, 3, 32, 32),), 8, passes=3)
    assert profile.batch == 8
    assert "conv" in key_operators(profile)[0]
    (conv,) = (each for each in profile.operators if "convolution" in each.name and each.seconds == _most(profile))
    assert conv.calls == 2
    assert sum(part.time_share for part in parts(profile)) == pytest.approx(1)
    activations_mb = 8 * 32 * (30 * 30 + 28 * 28) * 4 / 2**20
    assert profile.memory_mb >= activations_mb


def test_the_operators_of_a_recurrent_and_a_linear_model_differ() -> None:
    lstm = torch.nn.LSTM(16, 32, batch_first=True)
    recurrent = profile_torch(lstm, lambda batch: (torch.zeros(batch, 10, 16),), 4, passes=2)
    linear = profile_torch(torch.nn.Linear(256, 256), lambda batch: (torch.zeros(batch, 256),), 64, passes=2)
    assert key_operators(linear)[0] == "aten::addmm"
    assert {each.name for each in recurrent.operators} != {each.name for each in linear.operators}


def test_a_module_without_weights_and_a_training_module_are_profiled_as_served() -> None:
    module = torch.nn.Dropout(0.5)
    profile = profile_torch(
        torch.nn.Sequential(module, torch.nn.Softmax(-1)), lambda batch: (torch.ones(batch, 64),), 2
    )
    assert not module.training
    assert "aten::bernoulli_" not in {each.name for each in profile.operators}


def test_a_kernel_is_not_counted_beside_the_operator_that_started_it() -> None:
    def event(key: str, where: str, self_us: float) -> SimpleNamespace:
        kind, amounts = SimpleNamespace(name=where), {"self_device_memory_usage": 2**20, "self_cpu_time_total": 9.0}
        return SimpleNamespace(key=key, count=2, device_type=kind, self_device_time_total=self_us, **amounts)

    events = [
        event("aten::cudnn_convolution", "CPU", 50.0),
        event("aten::conv2d", "CPU", 0.0),
        event("void at::native::elementwise_kernel<128>", "CUDA", 50.0),
        event("cudnn::nchwToNhwc", "CUDA", 50.0),
        event("cudaLaunchKernel", "CPU", 3.0),
    ]
    found = read_pass(events, "cuda")
    assert found == {"aten::cudnn_convolution": Operator("aten::cudnn_convolution", 2, 50e-6, 1.0)}


def _most(profile) -> float:
    return max(each.seconds for each in profile.operators)
