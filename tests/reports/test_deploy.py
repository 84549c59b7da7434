"""Deployable files: every knob of the chosen configuration is in them, exactly, or is said not to be."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from mlcd_fixtures.scale_runs import elastic_run
from mlcd_fixtures.serving_runs import JOB, SERVICE, language_lines, serving_lines

from mlcd.clouds.servers.settings import Settings
from mlcd.core.configuration import Configuration, Offer
from mlcd.core.decision import Decision
from mlcd.core.errors import WrongState
from mlcd.core.job import Job
from mlcd.core.ledger import Decided, Ledger
from mlcd.planners.serve.agreement import Agreement
from mlcd.planners.serve.nouns import Endpoint, Knob, ServerSettings
from mlcd.planners.serve.targets import MLSERVER
from mlcd.reports.deploy.deployment import OWN, Deployment, Export, Part, deployment_of, holds, part_of, slug
from mlcd.reports.deploy.targets import TARGETS
from mlcd.reports.story import Story

NAMES = ("batch", "threads", "precision", "memory_gb", "max_wait_ms", "cores", "cpu_cores", "sm_share", "gpus",
         "instances", "users", "colour", "a b\n# c: {")  # fmt: skip
VALUES = st.one_of(
    st.integers(-3, 300),
    st.sampled_from([0.25, 0.5, 1.5, 4.0, 16.0, 12.5, 0.1, 2.0, 100.0, 1e-7, 1e12, 1 / 3]),
    st.sampled_from(["fp32", "int8", "bf16", "large", "", "x\ny: ${HOME} #"]),
)
KNOBS = st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=7)

# What a ModelConfig may hold, of triton's model_config.proto: field -> type, or the message it holds.
GROUP = {"count": int, "kind": str}
CONFIG: dict[str, Any] = {
    "name": str,
    "backend": str,
    "max_batch_size": int,
    "dynamic_batching": {"preferred_batch_size": [int], "max_queue_delay_microseconds": int},
    "instance_group": [GROUP],
    "parameters": [{"key": str, "value": {"string_value": str}}],
}
# Of KServe's serving.kserve.io/v1beta1 schema.
PREDICTOR = {"minReplicas", "model"}
MODEL_SPEC = {"modelFormat", "runtime", "protocolVersion", "storageUri", "resources", "env"}
COMPOSE = {"image", "command", "ports", "volumes", "restart", "cpus", "mem_limit", "deploy", "environment"}


def deployment(knobs: Mapping[str, Knob], job: Job = JOB) -> Deployment:
    """The deployment of a run that has decided for these knobs."""
    place = Configuration(Offer("machine", 0.1, 1, 1), 1, ServerSettings(tuple(knobs.items())))
    started = serving_lines(job, places=[])[:1]
    decided = replace(started[0], seq=2, entry=Decided(Decision(place, "as told")))
    return deployment_of("resnet50-1", Story.of([*started, decided]).account)


def parse(text: str) -> dict[str, Any]:
    """Protobuf's text format: fields, messages in braces, lists in brackets, comments."""
    words = re.findall(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+', re.sub(r"(?m)^\s*#.*$", "", text))
    found, rest = message(words, CONFIG)
    assert rest == []
    return found


def message(words: list[str], fields: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    found: dict[str, Any] = {}
    while words and words[0] != "}":
        name, words = words[0], words[1:]
        assert name in fields, f"no field {name}"
        kind = fields[name]
        words = words[1:] if words[0] == ":" else words
        many = isinstance(kind, list)
        if words[0] == "[":
            assert many, f"{name} is no list"
            values, words = [], words[1:]
            while words[0] != "]":
                value, words = one(words, kind[0])
                values.append(value)
                words = words[1:] if words[0] == "," else words
            found[name], words = found.get(name, []) + values, words[1:]
        else:
            value, words = one(words, kind[0] if many else kind)
            assert many or name not in found, f"{name} twice"
            found[name] = [*found.get(name, []), value] if many else value
    return found, words


def one(words: list[str], kind: Any) -> tuple[Any, list[str]]:
    if isinstance(kind, dict):
        assert words[0] == "{"
        value, rest = message(words[1:], kind)
        assert rest[0] == "}"
        return value, rest[1:]
    if kind is int:
        return int(words[0]), words[1:]
    return json.loads(words[0]) if words[0].startswith('"') else words[0], words[1:]


def of_config(text: str) -> dict[Part, float]:
    """What a config.pbtxt says of each part."""
    config = parse(text)
    assert config["backend"] == "onnxruntime"
    batching = config.get("dynamic_batching", {})
    assert all(size == config["max_batch_size"] for size in batching.get("preferred_batch_size", []))
    found: dict[Part, float] = {Part.INSTANCES: config["instance_group"][0]["count"]}
    if "max_batch_size" in config:
        found[Part.BATCH] = config["max_batch_size"]
    if "max_queue_delay_microseconds" in batching:
        found[Part.WAIT] = batching["max_queue_delay_microseconds"] / 1_000
    for parameter in config.get("parameters", []):
        number = int(parameter["value"]["string_value"])
        if parameter["key"] == "gpu_mem_limit":
            assert config["instance_group"][0]["kind"] == "KIND_GPU"
            found[Part.MEMORY] = number / 1e9
        else:
            assert parameter["key"] == "intra_op_thread_count"
            found[Part.THREADS] = number
    return found


def of_triton(export: Export) -> dict[Part, float]:
    assert export.model_at.replace("1/model.onnx", "config.pbtxt") == export.main
    return of_config(export.files[export.main])


def quantity(words: str) -> float:
    """Kubernetes' notation: 500M, 4G, 1500m."""
    units = {"G": 1e9, "M": 1e6, "m": 1e-3}
    return float(words[:-1]) * units[words[-1]] if words[-1] in units else float(words)


def of_kserve(export: Export) -> dict[Part, float]:
    service = yaml.safe_load(export.files[export.main])
    assert (service["apiVersion"], service["kind"]) == ("serving.kserve.io/v1beta1", "InferenceService")
    assert re.fullmatch(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?", service["metadata"]["name"])
    assert all(isinstance(value, str) for value in service["metadata"]["annotations"].values())
    predictor = service["spec"]["predictor"]
    assert set(predictor) == PREDICTOR
    model = predictor["model"]
    assert set(model) <= MODEL_SPEC
    assert model["modelFormat"] == {"name": "onnx"}
    assert model["resources"]["limits"] == model["resources"]["requests"]
    assert all(isinstance(value, str) for value in model["resources"]["limits"].values())
    found = of_repository(export)
    limits = model["resources"]["limits"]
    if "cpu" in limits:
        found[Part.CORES] = quantity(limits["cpu"])
    if "memory" in limits:
        found[Part.MEMORY] = quantity(limits["memory"]) / 1e9
    if "nvidia.com/gpu" in limits:
        found[Part.GPUS] = int(limits["nvidia.com/gpu"])
    for variable in model.get("env", []):
        assert variable["name"] == "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"
        found[Part.SHARE] = float(variable["value"])
    return found


def of_compose(export: Export) -> dict[Part, float]:
    services = yaml.safe_load(export.files[export.main])["services"]
    assert len(services) == 1
    service = next(iter(services.values()))
    assert set(service) <= COMPOSE
    found = of_repository(export)
    if "cpus" in service:
        found[Part.CORES] = service["cpus"]
    if "mem_limit" in service:
        assert re.fullmatch(r"\d+b", service["mem_limit"])
        found[Part.MEMORY] = int(service["mem_limit"][:-1]) / 1e9
    if "deploy" in service:
        found[Part.GPUS] = service["deploy"]["resources"]["reservations"]["devices"][0]["count"]
    if "environment" in service:
        found[Part.SHARE] = float(service["environment"]["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"])
    return found


def of_repository(export: Export) -> dict[Part, float]:
    configs = [path for path in export.files if path.endswith("config.pbtxt")]
    assert configs == [export.model_at.replace("1/model.onnx", "config.pbtxt")]
    return of_config(export.files[configs[0]])


def of_mlserver(export: Export) -> dict[Part, float]:
    settings = json.loads(export.files[export.model_at.replace("model.onnx", "model-settings.json")])
    assert settings["parameters"]["uri"] == "./model.onnx"
    found = {part: settings[name] for part, name in ((Part.BATCH, "max_batch_size"),) if name in settings}
    if "max_batch_time" in settings:
        found[Part.WAIT] = round(1_000 * settings["max_batch_time"], 9)
    if "threads" in settings["parameters"]["extra"]:
        found[Part.THREADS] = settings["parameters"]["extra"]["threads"]
    if (pinned := re.search(r"(?m)^exec taskset -c 0-(\d+) mlserver", export.files[export.main])) is not None:
        found[Part.CORES] = int(pinned[1]) + 1
    return found


READERS = {"triton": of_triton, "kserve": of_kserve, "compose": of_compose, "mlserver": of_mlserver}


def left_out(text: str) -> dict[str, Knob]:
    """The knobs that a file's comments say are not in it."""
    found = {}
    for words in re.findall(r"(?m)^# NOT IN HERE: (.*)$", text):
        name = re.match(r'"(?:[^"\\]|\\.)*"|[\w.-]+', words)
        assert name is not None
        value, _ = json.JSONDecoder().raw_decode(words[name.end() + len(" = ") :])
        found[json.loads(name[0]) if name[0].startswith('"') else name[0]] = value
    return found


@pytest.mark.parametrize("target", TARGETS)
@given(knobs=KNOBS)
def test_any_configuration_reads_back_from_its_files_knob_by_knob(target: str, knobs: dict[str, Knob]) -> None:
    made = deployment(knobs)
    export = TARGETS[target](made)
    fields, comments = READERS[target](export), left_out(export.files[export.main])
    seen = {}
    for name, value in knobs.items():
        part = part_of(name)
        if name in comments:
            seen[name] = comments[name]
            assert f"- NOT IN HERE: {json.dumps(name) if ' ' in name else name} = " in export.files["README.md"]
        elif part is Part.PRECISION:
            assert value == "fp32"  # the file as it is
            seen[name] = value
        else:
            seen[name] = fields[part]
    assert seen == knobs
    assert {told.name for told in export.missing} == set(comments)


@pytest.mark.parametrize("target", TARGETS)
@given(knobs=KNOBS)
def test_nothing_the_user_wrote_leaves_its_comment(target: str, knobs: dict[str, Knob]) -> None:
    export = TARGETS[target](deployment(knobs))
    body = "\n".join(line for line in export.files[export.main].splitlines() if not line.startswith("# "))
    assert "HOME" not in re.sub(r"mlcd-knobs: .*", "", body)
    assert "colour" not in re.sub(r"mlcd-knobs: .*", "", body)


def test_what_mlcds_own_server_does_by_itself_is_deployed_too() -> None:
    usual = Settings()
    assert {"threads": usual.threads, "batch": usual.batch, "max_wait_ms": usual.max_wait_ms} == OWN
    fields = of_triton(TARGETS["triton"](deployment({"threads": 3})))
    assert (fields[Part.THREADS], fields[Part.BATCH], fields[Part.WAIT]) == (3, 1, 5.0)
    elsewhere = replace(JOB, ask=replace(SERVICE, endpoint=Endpoint("http://here:8000", "m")))
    made = deployment({"threads": 3}, elsewhere)
    assert Part.BATCH not in of_triton(TARGETS["triton"](made))
    assert "of the server at http://here:8000" in TARGETS["triton"](made).files["README.md"]


def test_a_server_of_so_many_threads_gets_so_many_cores() -> None:
    for target in ("kserve", "compose"):
        assert READERS[target](TARGETS[target](deployment({"threads": 2})))[Part.CORES] == 2
        both = READERS[target](TARGETS[target](deployment({"threads": 2, "cores": 1.5})))
        assert (both[Part.THREADS], both[Part.CORES]) == (2, 1.5)


def test_memory_is_that_of_the_server_that_was_measured() -> None:
    made = replace(deployment({"memory_gb": 0.5}), server="triton 2.50.0", peak_gb=0.42)
    assert "memory: 500M" in TARGETS["kserve"](made).files["inferenceservice.yaml"]
    assert "mem_limit: 500000000b" in TARGETS["compose"](made).files["docker-compose.yaml"]
    free = replace(deployment({"batch": 2}), server="triton 2.50.0", peak_gb=0.42)
    assert "memory: 530M" in TARGETS["kserve"](free).files["inferenceservice.yaml"]
    assert any("1.25 times the 0.42 GB" in note for note in TARGETS["kserve"](free).notes)


def test_memory_of_a_server_that_was_not_measured_is_an_allowance_and_says_so() -> None:
    own = replace(deployment({"memory_gb": 0.5}), peak_gb=0.42)
    export = TARGETS["kserve"](own)
    assert "memory: 1500M" in export.files["inferenceservice.yaml"]
    assert any("memory 1.5 GB is an estimate, since triton was not measured" in note for note in export.notes)
    assert [told.name for told in export.missing] == ["memory_gb"]
    roomy = TARGETS["kserve"](replace(deployment({"memory_gb": 4}), peak_gb=0.42))
    assert "memory: 4G" in roomy.files["inferenceservice.yaml"]  # it is paid for, and more than enough


def test_what_is_certified_is_what_is_deployed() -> None:
    made = replace(deployment({"batch": 2, "threads": 1}), server="mlserver 1.7.1", source="live, of mlserver")
    same, other = TARGETS["mlserver"](made), TARGETS["triton"](made)
    assert same.notes == ("measured on mlserver 1.7.1, with the settings of these files",)
    assert MLSERVER.files("resnet50", 2, 5.0, 1).items() <= same.files.items()
    assert "NOT CERTIFIED on triton: rate and latency were measured elsewhere (live, of mlserver)" in other.notes[0]
    for export in (same, other):
        assert all(f"- {note}." in export.files["README.md"] for note in export.notes)
        assert f"# {export.notes[0]}\n" in export.files[export.main]


def test_int8_is_exported_with_what_is_known_of_its_answers() -> None:
    for agreement, words in (
        (None, "int8 was not checked"),
        (Agreement(0.996, 500, "top class", 0.99), "on 99.6 % of 500"),
    ):
        job = replace(JOB, ask=replace(SERVICE, agreement=agreement))
        for target in TARGETS.values():
            assert any(words in note for note in target(deployment({"precision": "int8"}, job)).notes)
            assert not any("int8" in note for note in target(deployment({"precision": "fp32"}, job)).notes)


def test_a_share_of_a_gpu_runs_on_a_gpu() -> None:
    made = deployment({"sm_share": 25, "batch": 8, "memory_gb": 2})
    assert "KIND_GPU" in TARGETS["triton"](made).files["resnet50/config.pbtxt"]
    kserve = of_kserve(TARGETS["kserve"](made))
    assert (kserve[Part.GPUS], kserve[Part.SHARE]) == (1, 25)
    assert (
        "memory"
        not in yaml.safe_load(TARGETS["kserve"](made).files["inferenceservice.yaml"])["spec"]["predictor"]["model"][
            "resources"
        ]["limits"]
    )  # what trials were held to is the GPU's memory
    assert kserve[Part.MEMORY] == 2
    assert "MIG" in TARGETS["kserve"](made).files["inferenceservice.yaml"]


def test_another_precision_is_told_with_the_way_to_it() -> None:
    made = deployment({"precision": "int8"})
    assert not made.as_it_is
    for target in TARGETS.values():
        export = target(made)
        assert [told.name for told in export.missing] == ["precision"]
        assert f"quantize_dynamic('MODEL', '{export.model_at}'" in export.files["README.md"]


def test_a_number_that_a_field_cannot_hold_is_not_rounded() -> None:
    assert holds(Part.BATCH, 2.5) is None
    assert holds(Part.BATCH, 0) is None
    assert holds(Part.BATCH, "8") is None
    assert holds(Part.WAIT, 0.0) == 0.0
    assert holds(Part.WAIT, 0.0005) is None
    assert holds(Part.MEMORY, 1 / 3) is None
    assert holds(Part.SHARE, 101) is None


@given(st.text(max_size=80))
def test_any_name_becomes_one_that_folders_and_clusters_accept(name: str) -> None:
    assert re.fullmatch(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?", slug(name))


def test_a_run_that_is_no_service_that_chose_nothing_or_that_speaks_is_refused_in_one_line() -> None:
    ledger = Ledger(None)
    trains = ledger.account(elastic_run(ledger))
    for account, words in (
        (trains, "trains a job: export it with --to skypilot"),
        (Story.of(serving_lines()[:1]).account, "has chosen no configuration"),
        (Story.of(language_lines()).account, "serves a language model"),
    ):
        with pytest.raises(WrongState, match=words):
            deployment_of("r-1", account)


def test_the_files_say_what_was_promised_and_by_which_run() -> None:
    account = Story.of(serving_lines()).account
    for target in TARGETS.values():
        export = target(deployment_of("resnet50-1", account))
        assert re.search(
            r"(?m)^# Chosen by MLCD in run resnet50-1 .*a million requests; certified", export.files[export.main]
        )


def compose_client() -> list[str] | None:
    """The command of Docker's compose client, if it is here."""
    for command in (["docker", "compose"], ["docker-compose"]):
        if shutil.which(command[0]) is None:
            continue
        if subprocess.run([*command, "version"], capture_output=True, check=False).returncode == 0:
            return command
    return None


def test_the_compose_client_accepts_the_file(tmp_path: Path) -> None:
    client = compose_client()
    if client is None:
        pytest.skip("needs Docker's compose client: install docker-compose")
    for knobs in ({"batch": 8, "threads": 2, "memory_gb": 0.5}, {"batch": 8, "sm_share": 25}):
        path = tmp_path / "docker-compose.yaml"
        path.write_text(TARGETS["compose"](deployment(knobs)).files["docker-compose.yaml"])
        command = [*client, "-f", str(path), "config"]
        environment = {
            "TRITON_IMAGE": "tritonserver:24.10",
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": str(tmp_path),
        }
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        assert done.returncode == 0, done.stderr
        assert "tritonserver:24.10" in done.stdout


def test_protobuf_itself_reads_the_config() -> None:
    descriptor_pb2 = pytest.importorskip("google.protobuf.descriptor_pb2", reason="needs: pip install protobuf")
    from google.protobuf import descriptor_pool, message_factory, text_format

    file = descriptor_pb2.FileDescriptorProto(name="triton_part.proto", package="part", syntax="proto3")
    kinds = descriptor_pb2.FieldDescriptorProto

    def add(name: str, *fields: tuple[str, int, int, bool, str]) -> None:
        new = file.message_type.add(name=name)
        for field, number, kind, many, of in fields:
            label = kinds.LABEL_REPEATED if many else kinds.LABEL_OPTIONAL
            new.field.add(name=field, number=number, type=kind, label=label, type_name=f".part.{of}" if of else None)

    text, number, nested = kinds.TYPE_STRING, kinds.TYPE_INT32, kinds.TYPE_MESSAGE
    kind = file.enum_type.add(name="Kind")
    for i, value in enumerate(("KIND_AUTO", "KIND_GPU", "KIND_CPU")):
        kind.value.add(name=value, number=i)
    add("Group", ("count", 2, number, False, ""), ("kind", 4, kinds.TYPE_ENUM, False, "Kind"))
    add("Batching", ("preferred_batch_size", 1, number, True, ""),
        ("max_queue_delay_microseconds", 2, kinds.TYPE_UINT64, False, ""))  # fmt: skip
    add("Value", ("string_value", 1, text, False, ""))
    add("Parameter", ("key", 1, text, False, ""), ("value", 2, nested, False, "Value"))
    add("Config", ("name", 1, text, False, ""), ("max_batch_size", 4, number, False, ""),
        ("instance_group", 7, nested, True, "Group"), ("dynamic_batching", 11, nested, False, "Batching"),
        ("parameters", 14, nested, True, "Parameter"), ("backend", 17, text, False, ""))  # fmt: skip
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    config = message_factory.GetMessageClass(pool.FindMessageTypeByName("part.Config"))()
    made = deployment({"batch": 8, "threads": 2, "max_wait_ms": 2.5, "instances": 3})
    text_format.Parse(TARGETS["triton"](made).files["resnet50/config.pbtxt"], config)
    assert config.max_batch_size == 8
    assert list(config.dynamic_batching.preferred_batch_size) == [8]
    assert config.dynamic_batching.max_queue_delay_microseconds == 2_500
    assert (config.instance_group[0].count, config.instance_group[0].kind) == (3, 2)
    assert (config.parameters[0].key, config.parameters[0].value.string_value) == ("intra_op_thread_count", "2")
