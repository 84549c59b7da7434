"""Triton Inference Server: a model repository with a `config.pbtxt` (ModelConfig of triton's model_config.proto).

field of Triton       knob           meaning
max_batch_size        batch          most requests in one forward pass
dynamic_batching      max_wait_ms    how long the first request of a batch waits for others, in microseconds
instance_group        instances      copies of the model, on the CPU or on each GPU
intra_op_thread_count threads        threads of ONNX Runtime (a parameter of the backend)
gpu_mem_limit         memory_gb      limit on GPU memory in bytes, if a GPU serves (a parameter of the backend)

Inputs and outputs are left out: Triton reads them from the ONNX file.
"""

from __future__ import annotations

from collections.abc import Mapping

MODEL = "1/model.onnx"
"""The path of a model's first version in its folder."""


def config(
    name: str,
    batch: int | None,
    wait_ms: float | None,
    threads: int | None,
    copies: int | None = None,
    on_gpu: bool = False,
    gpu_gb: float | None = None,
) -> str:
    """The text of `config.pbtxt`."""
    lines = [f'name: "{name}"', 'backend: "onnxruntime"']
    lines += [f"max_batch_size: {batch}"] if batch is not None else []
    if batch is not None or wait_ms is not None:
        lines.append("dynamic_batching {")
        lines += [f"  preferred_batch_size: [ {batch} ]"] if batch is not None else []
        lines += [f"  max_queue_delay_microseconds: {round(1_000 * wait_ms)}"] if wait_ms is not None else []
        lines.append("}")
    kind = "KIND_GPU" if on_gpu else "KIND_CPU"
    lines.append(f"instance_group [ {{ count: {1 if copies is None else copies} kind: {kind} }} ]")
    numbers = {"intra_op_thread_count": threads, "gpu_mem_limit": None if gpu_gb is None else round(1e9 * gpu_gb)}
    for key, number in numbers.items():
        if number is not None:
            lines.append(f'parameters {{ key: "{key}" value {{ string_value: "{number}" }} }}')
    return "\n".join(lines) + "\n"


def files(name: str, batch: int, wait_ms: float, threads: int) -> Mapping[str, str]:
    """The configuration files of a model, by path."""
    return {f"{name}/config.pbtxt": config(name, batch, wait_ms, threads)}


def model_at(name: str) -> str:
    """The path of the model's own file."""
    return f"{name}/{MODEL}"


def arguments(folder: str, ports: tuple[int, int, int]) -> list[str]:
    """Arguments of `tritonserver`."""
    http, grpc, metrics = ports
    addresses = [f"--http-port={http}", f"--grpc-port={grpc}", f"--metrics-port={metrics}"]
    return [f"--model-repository={folder}", "--http-address=127.0.0.1", "--grpc-address=127.0.0.1", *addresses]
