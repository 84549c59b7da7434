"""Inference engines for language models (vLLM, SGLang, TensorRT-LLM, llama.cpp), and serving trials on them."""

from mlcd.clouds.engines.kind import EngineKind
from mlcd.clouds.engines.llamacpp import LLAMA_CPP
from mlcd.clouds.engines.sglang import SGLANG
from mlcd.clouds.engines.trtllm import TRTLLM
from mlcd.clouds.engines.vllm import VLLM

ENGINES: dict[str, EngineKind] = {each.name: each for each in (VLLM, SGLANG, TRTLLM, LLAMA_CPP)}

__all__ = ["ENGINES", "EngineKind"]
