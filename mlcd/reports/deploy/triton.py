"""Triton Inference Server: a model repository with a `config.pbtxt` (ModelConfig of triton's model_config.proto).

max_batch_size        batch          the most requests of one pass
dynamic_batching      max_wait_ms    how long the first request of a batch waits for the others, in microseconds
instance_group        instances      copies of the model, on the CPU or on each GPU
intra_op_thread_count threads        of ONNX Runtime, which computes (a parameter of its backend)
gpu_mem_limit         memory_gb      what it may hold of a GPU, in bytes, where one serves (the same)

Inputs and outputs are left out: Triton reads them from the ONNX file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mlcd.reports.deploy.deployment import MODEL, Deployment, Export, Part, Told, header, readme

FIELDS = {
    Part.BATCH: "max_batch_size",
    Part.WAIT: "dynamic_batching.max_queue_delay_microseconds",
    Part.THREADS: "parameters intra_op_thread_count",
    Part.INSTANCES: "instance_group.count",
}
NOTES = {
    Part.CORES: "a model repository sizes no machine: start Triton with that many cores",
    Part.MEMORY: "a model repository sizes no machine: start Triton with that much memory (in 1e9 bytes)",
    Part.SHARE: "percent of a GPU: start Triton under MPS with CUDA_MPS_ACTIVE_THREAD_PERCENTAGE, or on a MIG slice",
    Part.GPUS: "start Triton with that many GPUs",
    Part.PRECISION: "Triton serves the file that it is given: put the model there at this precision",
    Part.LOAD: "it is of the load that was sent, not of the server",
}


def triton(deployment: Deployment) -> Export:
    """The model repository."""
    fields = _fields(deployment)
    told = deployment.told(lambda part: fields.get(part, ""), NOTES)
    at = f"{deployment.name}/config.pbtxt"
    start = "tritonserver --model-repository=DIR"
    files = {at: config(deployment, told), "README.md": readme(deployment, told, deployment.name, start)}
    return Export(files, at, told, f"{deployment.name}/{MODEL}", start)


def beside(deployment: Deployment, fields: Mapping[Part, str]) -> Callable[[Part], str]:
    """Where a part goes in a target with these fields of its own, and a repository beside them."""
    mine = {part: f"config.pbtxt: {field}" for part, field in _fields(deployment).items()}
    return lambda part: mine.get(part) or fields.get(part, "")


def _fields(deployment: Deployment) -> Mapping[Part, str]:
    """On a GPU, the memory that trials were held to is the GPU's."""
    return {**FIELDS, **({Part.MEMORY: "parameters gpu_mem_limit"} if deployment.on_gpu else {})}


def config(deployment: Deployment, told: tuple[Told, ...]) -> str:
    """`config.pbtxt`, with where every knob went on top."""
    batch, wait = deployment.whole(Part.BATCH), deployment.number(Part.WAIT)
    threads, copies = deployment.whole(Part.THREADS), deployment.whole(Part.INSTANCES)
    lines = [f'name: "{deployment.name}"', 'backend: "onnxruntime"']
    lines += [f"max_batch_size: {batch}"] if batch is not None else []
    if batch is not None or wait is not None:
        lines.append("dynamic_batching {")
        lines += [f"  preferred_batch_size: [ {batch} ]"] if batch is not None else []
        lines += [f"  max_queue_delay_microseconds: {round(1_000 * wait)}"] if wait is not None else []
        lines.append("}")
    kind = "KIND_GPU" if deployment.on_gpu else "KIND_CPU"
    lines.append(f"instance_group [ {{ count: {1 if copies is None else copies} kind: {kind} }} ]")
    memory = deployment.number(Part.MEMORY) if deployment.on_gpu else None
    numbers = {"intra_op_thread_count": threads, "gpu_mem_limit": None if memory is None else round(1e9 * memory)}
    for key, number in numbers.items():
        if number is not None:
            lines.append(f'parameters {{ key: "{key}" value {{ string_value: "{number}" }} }}')
    return header(deployment, told) + "\n".join(lines) + "\n"
