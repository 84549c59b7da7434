"""Recorded load tests of three kinds: reading them, and composing the result of a configuration."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest
from mlcd_fixtures.recorded_services import write_device, write_instances, write_language

from mlcd.core.configuration import Configuration
from mlcd.core.errors import RecordingError
from mlcd.planners.serve.known_models import Kind
from mlcd.planners.serve.model_facts import Operator, Profile
from mlcd.planners.serve.nouns import Counted, Figure, knobs_of
from mlcd.planners.serve.recordings import inputs_of, read_folder


def place(folder_space: tuple[Configuration, ...], **knobs: object) -> Configuration:
    return next(c for c in folder_space if dict(knobs_of(c)) == knobs)


def test_a_device_is_composed_of_gpu_host_and_memory(tmp_path: Path) -> None:
    folder = read_folder(write_device(tmp_path))
    assert folder.knowledge.kind is Kind.DEVICE
    space, model = folder.space("net_a").configurations, folder.model("net_a")
    assert len(space) == 2 * 2 * 3 * 5 * 6
    free = place(space, precision="fp32", sm_share=100, batch=64, cpu_cores=5, memory_gb=8)
    held_back = place(space, precision="fp32", sm_share=100, batch=64, cpu_cores=1, memory_gb=8)
    too_small = place(space, precision="fp32", sm_share=100, batch=64, cpu_cores=5, memory_gb=0.5)
    cell = folder.knowledge.composed(model, free)
    host = folder.knowledge.composed(model, held_back)
    assert cell is not None
    assert host is not None
    assert cell.rate > host.rate == 500
    assert cell.figures[Figure.P95] == host.figures[Figure.P95] == pytest.approx(64 / cell.rate)
    assert folder.knowledge.composed(model, too_small) is None
    assert free.usd_per_hour == pytest.approx(0.05 * 5 + 4.00 + 0.02 * 8)


def test_a_missing_row_is_a_configuration_that_does_not_run(tmp_path: Path) -> None:
    folder = read_folder(write_device(tmp_path, missing=("net_b", "bf16", 50, 8)))
    space, model = folder.space("net_b").configurations, folder.model("net_b")
    gone = place(space, precision="bf16", sm_share=50, batch=8, cpu_cores=1, memory_gb=16)
    assert folder.knowledge.composed(model, gone) is None


def test_profiles_carry_time_and_memory_by_operator(tmp_path: Path) -> None:
    profiles = read_folder(write_device(tmp_path)).model("net_a").facts.profiles
    assert [(p.batch, p.precision) for p in profiles] == [(8, "fp32"), (64, "fp32")]
    assert profiles[0].seconds == pytest.approx(0.002)
    assert sum(profiles[0].shares.values()) == pytest.approx(1)


@pytest.mark.parametrize(
    ("name", "family", "kind"),
    [
        ("resnet50", "cnn", "image224"),
        ("vit_b_16", "transformer", "image224"),
        ("swin_t", "transformer", "image224"),
        ("inception_v3", "cnn", "image299"),
        ("efficientnet_b4", "cnn", "image380"),
        ("yolo_like", "cnn", "image416"),
        ("bert_base", "transformer", "tokens128"),
        ("gru", "rnn", "tokens50"),
        ("dcgan", "gan", "tokens50"),
    ],
)
def test_the_kind_of_input_follows_the_rule_of_the_recording(name: str, family: str, kind: str) -> None:
    assert inputs_of(name, family) == kind


@pytest.mark.parametrize("name", ["swin_t", "maxvit_t", "a_name_that_says_nothing"])
def test_a_transformer_that_runs_convolutions_takes_images(name: str) -> None:
    patches = Operator("aten::cudnn_convolution", 1, 1e-4)
    products = Operator("aten::addmm", 48, 1e-2)
    assert inputs_of(name, "transformer", (Profile(8, (products, patches)),)) == "image224"
    assert inputs_of(name, "transformer", (Profile(8, (products,)),)) == "tokens128"


def test_a_recording_may_say_the_kind_of_input_itself(tmp_path: Path) -> None:
    path = write_device(tmp_path) / "points.csv"
    head, *rows = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([f"{head},inputs", *(f"{row},image299" for row in rows)]) + "\n", encoding="utf-8")
    assert {model.facts.inputs for model in read_folder(tmp_path).knowledge.models} == {"image299"}


def test_machines_hold_the_types_that_the_model_was_measured_on(tmp_path: Path) -> None:
    folder = read_folder(write_instances(tmp_path))
    assert folder.knowledge.kind is Kind.INSTANCES
    types = {dict(knobs_of(c))["instance_type"] for c in folder.space("net_a").configurations}
    assert types == {"c5.large", "g4dn.xlarge"}
    one = place(folder.space("net_a").configurations, instance_type="c5.large", batch=10)
    cell = folder.knowledge.composed(folder.model("net_a"), one)
    assert cell is not None
    assert cell.rate == pytest.approx(10 / 0.1)
    assert cell.figures[Figure.P95] == pytest.approx(0.12)


def test_language_models_count_tokens_and_fail_where_nothing_was_recorded(tmp_path: Path) -> None:
    folder = read_folder(write_language(tmp_path))
    assert folder.counted is Counted.TOKENS
    space = folder.space("big").configurations
    assert len(space) == 4
    fits = place(space, gpus="2 x A100", users=8)
    too_large = place(space, gpus="1 x T4", users=8)
    cell = folder.knowledge.composed(folder.model("big"), fits)
    assert cell is not None
    assert cell.figures[Figure.ITL_P95] == pytest.approx(0.05)
    assert folder.knowledge.composed(folder.model("big"), too_large) is None
    assert folder.knowledge.resources["gpus"]["2 x A100"]["memory_gb"] == 80
    assert folder.model("big").facts.parameters == 20


def test_a_folder_without_load_tests_and_a_damaged_one_are_one_line_each(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="no recorded load tests"):
        read_folder(tmp_path)
    (tmp_path / "points.csv").write_text("model,family\nnet,cnn\n")
    with pytest.raises(RecordingError, match=r"points\.csv:1: missing column precision"):
        read_folder(tmp_path)


@pytest.mark.parametrize(
    ("write", "file", "column", "written"),
    [
        (write_device, "points.csv", "rps", "0"),
        (write_device, "points.csv", "rps", "nan"),
        (write_device, "points.csv", "rps", "-5"),
        (write_device, "points.csv", "batch", "0"),
        (write_device, "points.csv", "sm_share", "half"),
        (write_device, "operators.csv", "device_mem_mb", "inf"),
        (write_device, "host.csv", "requests_per_s", "0"),
        (write_instances, "latency.csv", "mean_ms", "0"),
        (write_instances, "latency.csv", "p95_ms", "nan"),
        (write_instances, "price.csv", "usd_per_hour", "0"),
        (write_language, "load_tests.csv", "throughput_tok_per_s", "0"),
        (write_language, "load_tests.csv", "ttft_p95_ms", "nan"),
        (write_language, "gpu_features.csv", "gpu_memory_bandwidth", "0"),
    ],
)
def test_a_number_that_cannot_be_used_is_told_with_its_file_and_line(
    tmp_path: Path, write: Callable[[Path], Path], file: str, column: str, written: str
) -> None:
    path = write(tmp_path) / file
    with path.open(newline="") as table:
        rows = list(csv.DictReader(table))
    rows[1][column] = written
    with path.open("w", newline="") as table:
        writer = csv.DictWriter(table, list(rows[1]))
        writer.writeheader()
        writer.writerows(rows)
    with pytest.raises(RecordingError, match=rf"{file}:3: {column} '{written}'"):
        read_folder(tmp_path)


def test_a_file_that_is_missing_and_a_type_without_a_price_are_named(tmp_path: Path) -> None:
    prices = write_instances(tmp_path) / "price.csv"
    prices.write_text("instance_type,usd_per_hour\nc5.large,0.1\n")
    with pytest.raises(RecordingError, match=r"latency\.csv:4: g4dn\.xlarge has no price; add it to price\.csv"):
        read_folder(tmp_path)
    prices.unlink()
    with pytest.raises(RecordingError, match=r"price\.csv: no such file"):
        read_folder(tmp_path)


def test_operators_may_free_memory(tmp_path: Path) -> None:
    operators = write_device(tmp_path) / "operators.csv"
    operators.write_text(operators.read_text().replace("64.0", "-64.0", 1))
    assert read_folder(tmp_path).model("net_a").facts.profiles[0].operators[0].memory_mb == -64.0
