"""Exports of a language model: the engine, its version and flags as they were measured, in each tool's own fields."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from typing import Any

import pytest
import yaml
from mlcd_fixtures.engine_runs import CHAT, KNOBS, chat_account, chat_job
from mlcd_fixtures.serving_runs import language_lines

from mlcd.core.errors import UserError, WrongState
from mlcd.core.job import Job
from mlcd.planners.serve.nouns import service_of
from mlcd.reports.deploy.deployment import Export
from mlcd.reports.deploy.engine import Replicas
from mlcd.reports.deploy.engine_targets import ENGINE_TARGETS
from mlcd.reports.deploy.targets import exported, made_for
from mlcd.reports.story import Story

ON_CPU = chat_job({"threads": (2,), "kv_cache_gb": (0.5,), "precision": ("bf16",), "eager": ("eager",)}, "/models/tiny")
SPLIT = chat_job(
    {"gpu": ("h100_sxm",), "gpus": (8,), "mode": ("disagg",), "tp": (4,), "decode_workers": (1,),
     "prefill_workers": (2,), "prefill_tp": (2,)}, name="sglang", version="0.5.9"
)  # fmt: skip
VLLM_LINE = (
    "vllm serve org/Tiny-1B --host 0.0.0.0 --port 8000 --tensor-parallel-size 2 --quantization fp8 --max-num-seqs 32"
)


def made(to: str, job: Job = CHAT, **how: Any) -> Export:
    return made_for("tiny-1", chat_account(job), to, **how)


def document(to: str, job: Job = CHAT, **how: Any) -> Any:
    export = made(to, job, **how)
    return yaml.safe_load(export.files[export.main])


def test_the_script_is_the_command_line_that_was_measured() -> None:
    export = made("vllm")
    text = export.files["serve.sh"]
    assert text.splitlines()[-1] == f'exec {VLLM_LINE} "$@"'
    assert "# Needs vllm==0.32.0." in text
    assert "32 requests at once" in text
    assert "NOT IN HERE: gpu = " in text


def test_a_script_is_for_its_own_engine() -> None:
    with pytest.raises(WrongState, match="measured vllm: export it --to vllm"):
        made("sglang")
    line = made("sglang", chat_job(name="sglang", version="0.5.9")).files["serve.sh"].splitlines()[-1]
    assert line.startswith("exec python -m sglang.launch_server --model-path org/Tiny-1B")
    assert "--max-running-requests 32" in line
    with pytest.raises(WrongState, match="export it --to compose"):
        made("vllm", chat_job(name="trtllm"))


def test_no_more_are_let_in_than_were_measured() -> None:
    assert "--max-num-seqs 8 " in made("vllm", concurrency=8).files["serve.sh"]
    few = chat_job({**KNOBS, "sequences": (4,)})
    assert "--max-num-seqs 4 " in made("vllm", few).files["serve.sh"]
    without = chat_job({name: values for name, values in KNOBS.items() if name != "sequences"})
    assert "--max-num-seqs 32 " in made("vllm", without).files["serve.sh"]
    ranks = chat_job({**KNOBS, "tp": (1,), "gpus": (2,), "dp": (2,)})
    assert "--max-num-seqs 16 " in made("vllm", ranks).files["serve.sh"]
    with pytest.raises(UserError, match="--concurrency 7: it was not measured; choose from 1, 2, 4, 8, 16, 32"):
        made("vllm", concurrency=7)


def test_compose_runs_the_same_command_in_the_image_of_that_version() -> None:
    (service,) = document("compose")["services"].values()
    assert service["image"] == "${ENGINE_IMAGE:-vllm/vllm-openai:v0.32.0}"
    assert shlex.join([*service["entrypoint"], *service["command"]]) == VLLM_LINE
    (device,) = service["deploy"]["resources"]["reservations"]["devices"]
    assert device == {"driver": "nvidia", "count": 2, "capabilities": ["gpu"]}


def test_compose_on_a_cpu_mounts_the_folder_where_it_was() -> None:
    (service,) = document("compose", ON_CPU)["services"].values()
    assert service["image"] == "${ENGINE_IMAGE:?name an image of vllm 0.32.0 for a CPU}"
    assert service["volumes"] == ["/models/tiny:/models/tiny:ro"]
    assert service["environment"] == {"OMP_NUM_THREADS": "2", "VLLM_CPU_OMP_THREADS_BIND": "0-1"}
    assert "deploy" not in service
    assert "--kv-cache-memory-bytes 0.5g" in shlex.join(service["command"])


COMPOSE: dict[str, type | tuple[type, ...]] = {
    "image": str, "entrypoint": list, "command": list, "environment": dict, "ports": list, "restart": str,
    "volumes": list, "ipc": str, "deploy": dict,
}  # fmt: skip
"""Of the compose specification's schema: fields of a service, and what they hold."""


@pytest.mark.parametrize("job", [CHAT, ON_CPU])
def test_compose_has_only_fields_of_its_specification(job: Job) -> None:
    (service,) = document("compose", job)["services"].values()
    for field, value in service.items():
        assert isinstance(value, COMPOSE[field]), field
    assert all(isinstance(each, str) for each in [*service["command"], *service["environment"].values()])


def test_kserve_limits_requests_and_scales_by_what_one_replica_takes() -> None:
    service = document("kserve", replicas=Replicas(2, 6))
    assert (service["apiVersion"], service["kind"]) == ("serving.kserve.io/v1beta1", "InferenceService")
    predictor = service["spec"]["predictor"]
    assert (predictor["minReplicas"], predictor["maxReplicas"]) == (2, 6)
    assert predictor["containerConcurrency"] == 32
    assert 1 <= predictor["scaleTarget"] < 32
    (container,) = predictor["containers"]
    assert container["image"] == "vllm/vllm-openai:v0.32.0"
    assert shlex.join([*container["command"], *container["args"]]) == VLLM_LINE
    assert container["resources"]["limits"] == {"nvidia.com/gpu": "2"}
    assert json.loads(service["metadata"]["annotations"]["mlcd-knobs"])["precision"] == "fp8"


def test_kserve_takes_a_folder_from_where_it_was_uploaded() -> None:
    export = made("kserve", ON_CPU)
    (container,) = yaml.safe_load(export.files[export.main])["spec"]["predictor"]["containers"]
    assert container["args"][1] == "/mnt/models"
    assert {"name": "STORAGE_URI", "value": "s3://BUCKET/MODEL"} in container["env"]
    assert container["image"] == "ENGINE_IMAGE"
    assert "Name an image of vllm 0.32.0 for a CPU" in export.files["README.md"]


def test_skyserve_probes_and_scales_by_requests_a_second() -> None:
    task = document("skyserve", replicas=Replicas(2, 6))
    assert task["service"]["readiness_probe"] == {"path": "/health", "initial_delay_seconds": 60}
    policy = task["service"]["replica_policy"]
    assert (policy["min_replicas"], policy["max_replicas"]) == (2, 6)
    closed = re.search(r"take (\S+) requests a second .* \((\S+) were measured", made("skyserve").files["service.yaml"])
    assert closed is not None
    assert float(closed[1]) < float(closed[2])
    assert policy["target_qps_per_replica"] == pytest.approx(float(closed[1]) * 5 / 6, rel=0.01)  # one may be lost
    assert task["resources"] == {"ports": 8000, "accelerators": "H100:2"}
    assert task["setup"] == "pip install 'vllm==0.32.0'\n"
    assert task["run"].strip() == VLLM_LINE
    on_cpu = document("skyserve", ON_CPU)
    assert on_cpu["file_mounts"] == {"/models/tiny-1b": "/models/tiny"}
    assert on_cpu["resources"] == {"ports": 8000, "cpus": "2+"}


def test_dynamo_has_a_worker_with_the_same_flags() -> None:
    graph = document("dynamo")
    assert (graph["apiVersion"], graph["kind"]) == ("nvidia.com/v1alpha1", "DynamoGraphDeployment")
    worker = graph["spec"]["services"]["Worker"]
    container = worker["extraPodSpec"]["mainContainer"]
    assert worker["resources"] == {"limits": {"gpu": "2"}}
    assert container["command"] == ["python3", "-m", "dynamo.vllm"]
    assert shlex.join(container["args"]) == (
        "--model org/Tiny-1B --tensor-parallel-size 2 --quantization fp8 --max-num-seqs 32"
    )


def test_only_dynamo_runs_prefill_and_decoding_apart() -> None:
    for target in ENGINE_TARGETS:
        if target not in ("dynamo", "vllm"):
            with pytest.raises(WrongState, match="export it --to dynamo"):
                made(target, SPLIT)
    services = document("dynamo", SPLIT)["spec"]["services"]
    decode, prefill = services["DecodeWorker"], services["PrefillWorker"]
    assert (decode["replicas"], decode["resources"]["limits"]["gpu"]) == (1, "4")
    assert (prefill["replicas"], prefill["resources"]["limits"]["gpu"]) == (2, "2")
    assert prefill["extraPodSpec"]["mainContainer"]["args"][-2:] == ["--disaggregation-mode", "prefill"]
    assert "--tp-size 2" in shlex.join(prefill["extraPodSpec"]["mainContainer"]["args"])


def test_a_command_of_the_user_is_exported_as_it_ran() -> None:
    job = chat_job({"gpus": (1,), "sequences": (8,)}, name="", command="my-serve {model} -n {sequences} -p {port}")
    (service,) = document("compose", job)["services"].values()
    assert service["command"] == ["my-serve", "org/Tiny-1B", "-n", "8", "-p", "8000"]


def test_what_was_not_started_by_mlcd_cannot_be_exported() -> None:
    with pytest.raises(WrongState, match="already running"):
        made("compose", chat_job({"gpus": (1,)}, name="", url="http://here:8000"))


def test_another_trial_can_be_exported() -> None:
    first = made("vllm", trial=1).files["serve.sh"]
    assert "--tensor-parallel-size 1 --dtype bfloat16" in first
    with pytest.raises(UserError, match="--trial 99: run 'tiny-1' has no such trial that ran"):
        made("vllm", trial=99)


def test_every_knob_is_in_the_files_or_said_not_to_be() -> None:
    for job in (CHAT, ON_CPU):
        for target in (target for target in ENGINE_TARGETS if target != "sglang"):
            export = made(target, job)
            assert {knob.name for knob in export.knobs} == set(service_of(job).table.knobs)  # type: ignore[union-attr]
            for knob in export.missing:
                assert f"NOT IN HERE: {knob.name} = " in export.files[export.main]
                assert f"NOT IN HERE: {knob.name} = " in export.files["README.md"]


def test_targets_of_onnx_models_and_of_language_models_are_told_apart() -> None:
    with pytest.raises(WrongState, match="serves a language model: export it with --to vllm, sglang, compose"):
        made("triton")
    recorded = Story.of(language_lines()).account
    with pytest.raises(WrongState, match="serves a language model"):
        made_for("flan-1", recorded, "vllm")


def test_the_report_and_the_api_have_them_too() -> None:
    answer = exported("tiny-1", chat_account(), "compose")
    assert answer["main"] == "docker-compose.yaml"
    note = "not in the files: gpu = h100_sxm: a property of the machine: start the engine on such a GPU"
    assert answer["notes"] == [note]


def test_nothing_is_promised_of_random_arrivals_where_lengths_are_not_known() -> None:
    task = service_of(CHAT)
    assert task.language is not None
    own = replace(task.language, prompts=replace(task.language.prompts, file="prompts.jsonl"))
    text = made("skyserve", replace(CHAT, ask=replace(task, language=own))).files["service.yaml"]
    assert "target_qps_per_replica" not in text
