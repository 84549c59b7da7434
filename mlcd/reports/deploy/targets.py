"""Export of a decision for each deployment tool, used by command line, API and report.

Server settings are written by the same code as in the trials (`mlcd/planners/serve/targets`). KServe and Docker Compose
start Triton with a model repository, limited to the chosen size.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import yaml

from mlcd.core.errors import WrongState
from mlcd.core.ledger import Account
from mlcd.planners.serve.nouns import serving_task
from mlcd.planners.serve.targets.triton import MODEL, config
from mlcd.reports.deploy.deployment import Deployment, Export, Part, PlacedKnob, deployment_of, header, readme
from mlcd.reports.deploy.engine import ONE_REPLICA, Replicas, engine_deployment
from mlcd.reports.deploy.engine_targets import ENGINE_TARGETS
from mlcd.reports.deploy.lambda_ import lambda_configuration
from mlcd.reports.deploy.mlserver import mlserver
from mlcd.reports.skypilot import task_text

REPOSITORY = "model_repository"
CONFIG = {
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
    Part.LOAD: "a setting of the load test, not of the server",
}
KSERVE_FIELDS = {
    Part.CORES: "resources cpu",
    Part.MEMORY: "resources memory",
    Part.SHARE: "env CUDA_MPS_ACTIVE_THREAD_PERCENTAGE; needs MPS on the node, or name a MIG slice, not nvidia.com/gpu",
    Part.GPUS: "resources nvidia.com/gpu",
}
COMPOSE_FIELDS = {
    Part.CORES: "cpus",
    Part.MEMORY: "mem_limit",
    Part.SHARE: "environment CUDA_MPS_ACTIVE_THREAD_PERCENTAGE; needs an MPS daemon on the host",
    Part.GPUS: "deploy.resources.reservations.devices.count",
}
IMAGE = "${TRITON_IMAGE:?name a Triton server image, such as tritonserver:TAG}"
"""The user names the image."""


def exported(run: str, account: Account, to: str) -> dict[str, Any]:
    """The files of an export, the main one among them, and notes on what they lack."""
    notes: list[str] = []
    if to == "skypilot":
        main, files = "task.yaml", {"task.yaml": task_text(run, account)}
    elif to == "lambda":
        text = json.dumps(lambda_configuration(run, account), indent=2) + "\n"
        main, files = "lambda.json", {"lambda.json": text}
    else:
        made = made_for(run, account, to)
        main, files = made.main, dict(made.files)
        notes = [*made.notes, *(f"not in the files: {knob.name} = {knob.value}: {knob.note}" for knob in made.missing)]
    return {"run": run, "to": to, "main": main, "files": files, "notes": notes}


def made_for(
    run: str,
    account: Account,
    to: str,
    trial: int | None = None,
    concurrency: int | None = None,
    replicas: Replicas = ONE_REPLICA,
) -> Export:
    """A serving run's files for a tool. `trial`, `concurrency`, `replicas`: for language models only."""
    service = serving_task(account.job)
    if service is not None and service.language is not None:
        if to not in ENGINE_TARGETS:
            raise WrongState(f"run '{run}' serves a language model: export it with --to {', '.join(ENGINE_TARGETS)}")
        return ENGINE_TARGETS[to](engine_deployment(run, account, trial, concurrency, replicas))
    deployment = deployment_of(run, account)
    if to not in TARGETS:
        raise WrongState(f"run '{run}' serves an ONNX model: export it with --to {', '.join(TARGETS)}")
    return TARGETS[to](deployment)


def triton(deployment: Deployment) -> Export:
    """A model repository for Triton."""
    to, model_at = "triton", f"{deployment.name}/{MODEL}"
    placed = deployment.placed(_config_fields(deployment), NOTES, to)
    at = f"{deployment.name}/config.pbtxt"
    start = "tritonserver --model-repository=DIR"
    files = {at: _config(deployment, placed, to), "README.md": readme(deployment, placed, to, model_at, start)}
    return Export(files, at, placed, model_at, start, deployment.notes(to))


def kserve(deployment: Deployment) -> Export:
    """A KServe InferenceService, and the repository to upload."""
    main = "inferenceservice.yaml"
    model: dict[str, Any] = {
        "modelFormat": {"name": "onnx"},
        "runtime": "kserve-tritonserver",
        "protocolVersion": "v2",
        "storageUri": f"s3://BUCKET/{REPOSITORY}",
        "resources": {"limits": _kubernetes_size(deployment), "requests": _kubernetes_size(deployment)},
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
    upload = (
        f"Upload `{REPOSITORY}/` to where the cluster can read it, and write its address at `storageUri` in `{main}`. "
        "The cluster needs the runtime `kserve-tritonserver`, which KServe brings."
    )
    replicas = "The trial measured one replica; capacity grows with their number."
    top = f"# Upload {REPOSITORY}/ and write its address at storageUri.\n"
    start = f"kubectl apply -f {main}"
    return _with_repository(deployment, "kserve", KSERVE_FIELDS, main, service, start, upload, replicas, top=top)


def compose(deployment: Deployment) -> Export:
    """A compose file of one Triton server, and the repository that it serves."""
    service: dict[str, Any] = {
        "image": IMAGE,
        "command": ["tritonserver", "--model-repository=/models"],
        "ports": ["8000:8000", "8001:8001"],
        "volumes": [f"./{REPOSITORY}:/models:ro"],
        "restart": "unless-stopped",
    }
    cores, memory = deployment.cores, deployment.memory("triton")[0]
    service |= {"cpus": cores} if cores is not None else {}
    service |= {"mem_limit": f"{round(1e9 * memory)}b"} if memory is not None else {}
    if deployment.on_gpu:
        device = {"driver": "nvidia", "count": deployment.whole(Part.GPUS) or 1, "capabilities": ["gpu"]}
        service["deploy"] = {"resources": {"reservations": {"devices": [device]}}}
    if (share := deployment.number(Part.SHARE)) is not None:
        service["environment"] = {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": f"{share!r}"}
    start = "TRITON_IMAGE=tritonserver:TAG docker compose up"
    document = {"services": {deployment.name: service}}
    return _with_repository(deployment, "compose", COMPOSE_FIELDS, "docker-compose.yaml", document, start)


TARGETS: Mapping[str, Callable[[Deployment], Export]] = {
    "kserve": kserve,
    "triton": triton,
    "mlserver": mlserver,
    "compose": compose,
}
"""The export functions for ONNX models, by tool."""


def _with_repository(
    deployment: Deployment,
    to: str,
    fields: Mapping[Part, str],
    main: str,
    document: dict[str, Any],
    start: str,
    *more: str,
    top: str = "",
) -> Export:
    """A YAML file with its own fields, and a Triton repository. `more`: additional paragraphs of the README."""
    in_config = {part: f"config.pbtxt: {field}" for part, field in _config_fields(deployment).items()}
    placed = deployment.placed({**fields, **in_config}, NOTES, "triton")
    folder = f"{REPOSITORY}/{deployment.name}"
    model_at = f"{folder}/{MODEL}"
    body: str = yaml.safe_dump(document, sort_keys=False, width=1_000)
    files = {
        main: header(deployment, placed, to) + top + body,
        f"{folder}/config.pbtxt": _config(deployment, placed, to),
        "README.md": readme(deployment, placed, to, model_at, start, *more),
    }
    return Export(files, main, placed, model_at, start, deployment.notes(to))


def _config_fields(deployment: Deployment) -> Mapping[Part, str]:
    """The fields of config.pbtxt. On a GPU, the memory limit is the GPU's."""
    return {**CONFIG, **({Part.MEMORY: "parameters gpu_mem_limit"} if deployment.on_gpu else {})}


def _config(deployment: Deployment, placed: tuple[PlacedKnob, ...], to: str) -> str:
    """`config.pbtxt` with the place of every knob in its header."""
    whole, on_gpu = deployment.whole, deployment.on_gpu
    gpu_gb = deployment.number(Part.MEMORY) if on_gpu else None
    sizes = whole(Part.BATCH), deployment.number(Part.WAIT), whole(Part.THREADS), whole(Part.INSTANCES)
    return header(deployment, placed, to) + config(deployment.name, *sizes, on_gpu, gpu_gb)


def _kubernetes_size(deployment: Deployment) -> dict[str, str]:
    """Cores, memory and GPUs in Kubernetes' notation."""
    cores, memory = deployment.cores, deployment.memory("triton")[0]
    size = {"cpu": f"{cores:.10g}" if cores == int(cores) else f"{round(1_000 * cores)}m"} if cores is not None else {}
    size |= {"memory": _kubernetes_bytes(memory)} if memory is not None else {}
    return size | ({"nvidia.com/gpu": str(deployment.whole(Part.GPUS) or 1)} if deployment.on_gpu else {})


def _kubernetes_bytes(gb: float) -> str:
    """Memory in Kubernetes' notation: '4G' is 4e9 bytes; amounts that are not whole MB are in bytes."""
    count = round(1e9 * gb)
    for size, letter in ((10**9, "G"), (10**6, "M")):
        if count % size == 0:
            return f"{count // size}{letter}"
    return str(count)
