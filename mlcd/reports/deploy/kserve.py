"""KServe: an InferenceService (serving.kserve.io/v1beta1) on its Triton runtime, held to the chosen size.

Of the schema: metadata.name, .annotations; spec.predictor.minReplicas, .model.{modelFormat, runtime, protocolVersion,
storageUri, resources, env}. KServe's own batcher speaks only the v1 protocol, so batching is Triton's, in the
repository's `config.pbtxt`.
"""

from __future__ import annotations

import json
from typing import Any

import yaml

from mlcd.reports.deploy import triton
from mlcd.reports.deploy.deployment import MODEL, REPOSITORY, Deployment, Export, Part, header, readme

MAIN = "inferenceservice.yaml"
STORAGE = f"s3://BUCKET/{REPOSITORY}"
FIELDS = {
    Part.CORES: "resources cpu",
    Part.MEMORY: "resources memory",
    Part.SHARE: "env CUDA_MPS_ACTIVE_THREAD_PERCENTAGE; needs MPS on the node, or name a MIG slice, not nvidia.com/gpu",
    Part.GPUS: "resources nvidia.com/gpu",
}


def kserve(deployment: Deployment) -> Export:
    """The InferenceService and the repository to upload."""
    told = deployment.told(triton.beside(deployment, FIELDS), triton.NOTES)
    model: dict[str, Any] = {
        "modelFormat": {"name": "onnx"},
        "runtime": "kserve-tritonserver",
        "protocolVersion": "v2",
        "storageUri": STORAGE,
        "resources": {"limits": _size(deployment), "requests": _size(deployment)},
    }
    if (share := deployment.number(Part.SHARE)) is not None:
        model["env"] = [{"name": "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "value": f"{share!r}"}]
    knobs = json.dumps(dict(deployment.knobs))
    service = {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": deployment.name, "annotations": {"mlcd-run": deployment.run, "mlcd-knobs": knobs}},
        "spec": {"predictor": {"minReplicas": 1, "model": model}},
    }
    body: str = yaml.safe_dump(service, sort_keys=False, width=1_000)
    start = f"kubectl apply -f {MAIN}"
    folder = f"{REPOSITORY}/{deployment.name}"
    files = {
        MAIN: header(deployment, told) + f"# Upload {REPOSITORY}/ and write its address at storageUri.\n" + body,
        f"{folder}/config.pbtxt": triton.config(deployment, told),
        "README.md": readme(deployment, told, folder, start, _UPLOAD, _REPLICAS),
    }
    return Export(files, MAIN, told, f"{folder}/{MODEL}", start)


_UPLOAD = (
    f"Upload `{REPOSITORY}/` to where the cluster can read it, and write its address at `storageUri` in `{MAIN}`. The "
    "cluster needs the runtime `kserve-tritonserver`, which KServe brings."
)
_REPLICAS = "One replica is what the trial measured; more of them answer more, each as much."


def _size(deployment: Deployment) -> dict[str, str]:
    """Cores, memory and GPUs as Kubernetes writes them."""
    cores = deployment.cores
    memory = None if deployment.on_gpu else deployment.number(Part.MEMORY)
    size = {"cpu": f"{cores:.10g}" if cores == int(cores) else f"{round(1_000 * cores)}m"} if cores is not None else {}
    size |= {"memory": _bytes(memory)} if memory is not None else {}
    return size | ({"nvidia.com/gpu": str(deployment.whole(Part.GPUS) or 1)} if deployment.on_gpu else {})


def _bytes(gb: float) -> str:
    """'4G' is 4e9 bytes; what is no whole number of MB is written in bytes."""
    count = round(1e9 * gb)
    for size, letter in ((10**9, "G"), (10**6, "M")):
        if count % size == 0:
            return f"{count // size}{letter}"
    return str(count)
