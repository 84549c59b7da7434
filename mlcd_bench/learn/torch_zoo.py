"""The PyTorch models of the shipped GPU knowledge: five families, without downloads.

Vision models are torchvision's, language models transformers', all with random weights; the rest are in torch_wired.
The order mixes the families, so that an interrupted measurement has some of each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mlcd_bench.learn import torch_wired as own
from mlcd_bench.learn.torch_model import Module, TorchModel, fields, images, tokens, vectors


def _vision(name: str, side: int = 224, family: str = "cnn", **options: Any) -> TorchModel:
    def build() -> Module:
        from torchvision.models import get_model

        return get_model(name, weights=None, **options)

    return TorchModel(name, family, f"image{side}", build, images(side))


def _language(name: str, kind: str, vocabulary: int = 30_000, **sizes: Any) -> TorchModel:
    """`kind`: 'Bert' for transformers' BertConfig and BertModel."""

    def build() -> Module:
        import transformers

        config = getattr(transformers, f"{kind.removesuffix('Encoder')}Config")(vocab_size=vocabulary, **sizes)
        model = getattr(transformers, f"{kind}Model")(config)
        model.config.use_cache = False
        return model

    return TorchModel(name, "transformer", "tokens128", build, tokens(128, vocabulary))


def _recurrent(name: str, *sizes: Any) -> TorchModel:
    return TorchModel(name, "rnn", "tokens50", lambda: own.recurrent(*sizes), tokens(50, 10_000))


def _generator(name: str, build: Callable[[], Module], *noise: int) -> TorchModel:
    return TorchModel(name, "gan", "tokens50", build, vectors(*noise))


def _recommender(name: str, build: Callable[[], Module], *sizes: int) -> TorchModel:
    return TorchModel(name, "recsys", "tokens50", build, fields(*sizes))


def _bert(layers: int, hidden: int, heads: int, inner: int | None = None) -> Mapping[str, int]:
    return {
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "intermediate_size": inner or 4 * hidden,
    }


MODELS: tuple[TorchModel, ...] = (
    _vision("resnet18"),
    _language("bert_small", "Bert", **_bert(4, 512, 8)),
    _recurrent("lstm_2x512", "LSTM", 10_000, 256, 512, 2),
    _generator("dcgan128", lambda: own.dcgan(128, 64), 100, 1, 1),
    _recommender("ncf_large", lambda: own.neural_filtering(500_000, 128), 2, 0, 500_000),
    _vision("efficientnet_b0"),
    _language("minilm", "Bert", **_bert(6, 384, 12)),
    _recurrent("gru_3x1024", "GRU", 10_000, 512, 1024, 3),
    _generator("wgan", lambda: own.dcgan(64, 32, 128), 128, 1, 1),
    _recommender("dlrm", lambda: own.dlrm(26, 13, 100_000, 64), 26, 13, 100_000),
    _vision("densenet121"),
    _language("gpt2", "GPT2", 50_257),
    _recurrent("bilstm_256", "LSTM", 10_000, 128, 256, 1, True),
    TorchModel("pix2pix", "gan", "image256", own.pix2pix, images(256)),
    _recommender("deepfm", lambda: own.deepfm(39, 1_000_000, 16, 400), 39, 0, 1_000_000),
    _vision("regnet_y_1_6gf"),
    _vision("swin_t", family="transformer"),
    _recurrent("gru_1x256", "GRU", 10_000, 128, 256, 1),
    _vision("convnext_tiny"),
    _recommender("wide_deep", lambda: own.wide_and_deep(26, 13, 1_000_000, 32), 26, 13, 1_000_000),
    _language("albert_base", "Albert", embedding_size=128, **_bert(12, 768, 12)),
    _vision("resnet34"),
    TorchModel("super_resolution", "gan", "image64", own.super_resolution, images(64)),
    _recurrent("lstm_4x256", "LSTM", 10_000, 256, 256, 4),
    _language("electra_small", "Electra", embedding_size=128, **_bert(12, 256, 4)),
    TorchModel("tiny_detector", "cnn", "image416", own.detector, images(416)),
    _generator("mlp_gan", lambda: own.mlp_gan(100, 256, 3 * 64 * 64), 100),
    _vision("mnasnet1_0"),
    _language("t5_small", "T5Encoder", d_model=512, d_kv=64, d_ff=2048, num_layers=6, num_heads=8),
    _vision("vit_b_32", family="transformer"),
    _vision("resnext50_32x4d"),
    _recommender("wide_deep_small", lambda: own.wide_and_deep(10, 4, 50_000, 8), 10, 4, 50_000),
    _vision("alexnet"),
    _vision("vgg11_bn"),
    _vision("inception_v3", 299, init_weights=False, aux_logits=False),
)
