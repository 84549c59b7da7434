"""Docker Compose: one Triton server with the model repository beside the file, held to the chosen size."""

from __future__ import annotations

from typing import Any

import yaml

from mlcd.reports.deploy import triton
from mlcd.reports.deploy.deployment import MODEL, REPOSITORY, Deployment, Export, Part, header, readme

MAIN = "docker-compose.yaml"
IMAGE = "${TRITON_IMAGE:?name a Triton server image, such as tritonserver:TAG}"
"""Which image, from where, is the user's to say."""
FIELDS = {
    Part.CORES: "cpus",
    Part.MEMORY: "mem_limit",
    Part.SHARE: "environment CUDA_MPS_ACTIVE_THREAD_PERCENTAGE; needs an MPS daemon on the host",
    Part.GPUS: "deploy.resources.reservations.devices.count",
}


def compose(deployment: Deployment) -> Export:
    """The compose file and the repository that it serves."""
    told = deployment.told(triton.beside(deployment, FIELDS), triton.NOTES)
    service: dict[str, Any] = {
        "image": IMAGE,
        "command": ["tritonserver", "--model-repository=/models"],
        "ports": ["8000:8000", "8001:8001"],
        "volumes": [f"./{REPOSITORY}:/models:ro"],
        "restart": "unless-stopped",
        **_size(deployment),
    }
    body: str = yaml.safe_dump({"services": {deployment.name: service}}, sort_keys=False, width=1_000)
    start = "TRITON_IMAGE=tritonserver:TAG docker compose up"
    folder = f"{REPOSITORY}/{deployment.name}"
    files = {
        MAIN: header(deployment, told) + body,
        f"{folder}/config.pbtxt": triton.config(deployment, told),
        "README.md": readme(deployment, told, folder, start),
    }
    return Export(files, MAIN, told, f"{folder}/{MODEL}", start)


def _size(deployment: Deployment) -> dict[str, Any]:
    """Cores, memory and GPUs."""
    cores = deployment.cores
    memory = None if deployment.on_gpu else deployment.number(Part.MEMORY)
    size: dict[str, Any] = {"cpus": cores} if cores is not None else {}
    size |= {"mem_limit": f"{round(1e9 * memory)}b"} if memory is not None else {}
    if deployment.on_gpu:
        count = deployment.whole(Part.GPUS) or 1
        device = {"driver": "nvidia", "count": count, "capabilities": ["gpu"]}
        size["deploy"] = {"resources": {"reservations": {"devices": [device]}}}
    if (share := deployment.number(Part.SHARE)) is not None:
        size["environment"] = {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": f"{share!r}"}
    return size
