"""Single operators of a typical size, under the names of PyTorch's profiler on a GPU.

Their rates over a device's cells are what Falcon's KOP-RCs are made of. LSTM and GRU are one operator there, and
attention goes by one name in fp32 and by another in bf16.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlcd_bench.learn.torch_model import Feed, Module, TorchModel, tokens, vectors, wired


def _alone(name: str, build: Callable[[], Module], feed: Feed) -> TorchModel:
    return TorchModel(f"aten::{name}", "operator", "", build, feed)


def _layer(kind: str, *arguments: Any, **options: Any) -> Callable[[], Module]:
    def build() -> Module:
        from torch import nn

        return getattr(nn, kind)(*arguments, **options)

    return build


def _function(name: str) -> Callable[[], Module]:
    """An operator without weights, of one tensor."""

    def build() -> Module:
        import torch

        return wired(lambda parts, flow: getattr(torch.ops.aten, name)(flow))

    return build


def _of_itself(call: Callable[[Any], Any]) -> Callable[[], Module]:
    return lambda: wired(lambda parts, flow: call(flow))


def _attention(flow: Any) -> Any:
    from torch.nn.functional import scaled_dot_product_attention

    return scaled_dot_product_attention(flow, flow, flow)


def _softmax(flow: Any) -> Any:
    return flow.softmax(-1)


def _bmm(flow: Any) -> Any:
    return flow.transpose(1, 2).bmm(flow)


OPERATORS: tuple[TorchModel, ...] = (
    _alone("cudnn_convolution", _layer("Conv2d", 128, 128, 3, 1, 1, bias=False), vectors(128, 28, 28)),
    _alone("addmm", _layer("Linear", 768, 3072), vectors(128, 768)),
    _alone("_cudnn_rnn", _layer("LSTM", 256, 512, 1, batch_first=True), vectors(50, 256)),
    _alone(
        "cudnn_convolution_transpose", _layer("ConvTranspose2d", 256, 128, 4, 2, 1, bias=False), vectors(256, 16, 16)
    ),
    _alone("index_select", _layer("Embedding", 1_000_000, 64), tokens(26, 1_000_000)),
    _alone("native_batch_norm", _layer("BatchNorm2d", 128), vectors(128, 28, 28)),
    _alone("native_layer_norm", _layer("LayerNorm", 768), vectors(128, 768)),
    _alone("_efficient_attention_forward", _of_itself(_attention), vectors(12, 128, 64)),
    _alone("_cudnn_attention_forward", _of_itself(_attention), vectors(12, 128, 64)),
    _alone("_softmax", _of_itself(_softmax), vectors(12, 128, 128)),
    _alone("_conv_depthwise2d", _layer("Conv2d", 128, 128, 3, 1, 1, groups=128, bias=False), vectors(128, 28, 28)),
    _alone("bmm", _of_itself(_bmm), vectors(128, 64)),
    _alone("clamp_min", _function("relu"), vectors(128, 28, 28)),
    _alone("gelu", _function("gelu"), vectors(128, 3072)),
    _alone("add", _of_itself(lambda flow: flow + flow), vectors(128, 768)),
    _alone("max_pool2d_with_indices", _layer("MaxPool2d", 3, 2, 1), vectors(64, 56, 56)),
)
