"""Measure held-out models on this machine's GPU: models that are in no shipped knowledge base.

python3 benchmarks/measure_held_out_models.py --to DIR --minutes 9

Code and files are those of `python3 -m mlcd_bench.learn.on_gpu`, with other models: image transformers, large encoders
and deeper networks of every family. Nothing may be tuned on them. At least three passes a cell, not five: the largest
models take seconds a pass on an eighth of the device.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from mlcd_bench.learn import gpu_work, on_gpu, timing
from mlcd_bench.learn import torch_wired as own
from mlcd_bench.learn.torch_model import Module, TorchModel, images
from mlcd_bench.learn.torch_zoo import _bert, _language, _recommender, _recurrent, _vision


def small_vit() -> Module:
    from torchvision.models import VisionTransformer

    return VisionTransformer(image_size=224, patch_size=16, num_layers=12, num_heads=6, hidden_dim=384, mlp_dim=1536)


STRANGERS: tuple[TorchModel, ...] = (
    _vision("swin_v2_t", family="transformer"),
    _vision("maxvit_t", family="transformer"),
    _language("bert_large", "Bert", **_bert(24, 1024, 16)),
    TorchModel("deit_small", "transformer", "image224", small_vit, images(224)),
    _language("xlmr_base", "XLMRoberta", 250_002, max_position_embeddings=514, **_bert(12, 768, 12)),
    _vision("regnet_x_3_2gf"),
    _language("bert_medium_deep", "Bert", **_bert(16, 640, 10)),
    _recurrent("lstm_6x768", "LSTM", 10_000, 512, 768, 6),
    _vision("swin_s", family="transformer"),
    _vision("wide_resnet50_2"),
    _recommender("dlrm_wide", lambda: own.dlrm(40, 20, 200_000, 128), 40, 20, 200_000),
    _vision("efficientnet_b4", 380),
    _vision("convnext_small"),
    _language("distil_gpt2", "GPT2", 50_257, n_layer=6),
)

# Also when a process is spawned and reads this file anew.
on_gpu.MODELS = STRANGERS
gpu_work.BY_NAME.update({model.name: model for model in STRANGERS})
timing.FEWEST = 3

if __name__ == "__main__":
    on_gpu.main([*sys.argv[1:], "--models", ",".join(model.name for model in STRANGERS)])
