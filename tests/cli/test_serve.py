"""mlcd serve on recorded load tests: it decides, can be asked again at no cost, and refuses nonsense."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mlcd_fixtures.recorded_services import write_device, write_engines, write_language

Mlcd = Callable[..., Any]


@pytest.fixture
def recorded(tmp_path: Path) -> str:
    return f"recorded:{write_device(tmp_path / 'recorded')}"


def test_serve_finds_a_configuration_that_keeps_the_cap(mlcd: Mlcd, recorded: str) -> None:
    answer = mlcd("serve", "net_a", "--on", recorded, "--latency-p95", "20ms", "--trials", "6", "-o", "json")
    run = answer.document
    assert answer.code == 0
    assert run["decision"]["certified"]
    assert run["decision"]["configuration"]["knobs"]["batch"] in (1, 8, 64)
    assert len(run["trials"]) <= 6
    chosen = next(t for t in run["trials"] if t["knobs"] == run["decision"]["configuration"]["knobs"])
    assert chosen["figures"]["p95"] <= 0.02


def test_the_budget_is_over_all_trials_together(mlcd: Mlcd, recorded: str) -> None:
    run = mlcd("serve", "net_a", "--on", recorded, "--budget", "0.30", "--trials", "50", "-o", "json").document
    assert 0 < run["spent_usd"] <= 0.30


def test_cheapest_under_a_rate_costs_no_more_than_the_best_per_dollar(mlcd: Mlcd, recorded: str) -> None:
    cheap = mlcd("serve", "net_b", "--on", recorded, "--min-rps", "200", "--goal", "cheapest", "-o", "json").document
    chosen = next(t for t in cheap["trials"] if t["knobs"] == cheap["decision"]["configuration"]["knobs"])
    assert chosen["rate"] >= 200


def test_an_impossible_cap_says_what_comes_closest_and_exits_3(mlcd: Mlcd, recorded: str) -> None:
    answer = mlcd("serve", "net_a", "--on", recorded, "--latency-p95", "0.1ms", "--trials", "4")
    assert answer.code == 3
    assert "p95 <= 0.1 ms" in answer.out
    assert "closest" in answer.out


def test_what_if_answers_from_stored_trials(mlcd: Mlcd, recorded: str) -> None:
    mlcd("serve", "net_a", "--on", recorded, "--trials", "8", "--method", "random")
    tight = mlcd("what-if", "last", "--latency-p95", "5ms")
    assert tight.code == 0
    assert "p95 <= 5 ms" in tight.out
    loose = mlcd("what-if", "last", "--latency-p95", "none", "-o", "json")
    assert loose.document["decision"]["configuration"] is not None


def test_what_if_refuses_a_cap_on_what_no_trial_measured(mlcd: Mlcd, recorded: str) -> None:
    mlcd("serve", "net_a", "--on", recorded, "--trials", "2", "--method", "random")
    answer = mlcd("what-if", "last", "--ttft-p95", "200ms")
    assert answer.code == 2
    assert (
        answer.err.strip()
        == "mlcd: --ttft-p95: trials of net_a do not measure this; use --latency-p50, --latency-p95 or --latency-p99"
    )


def test_an_infeasible_run_is_not_told_to_raise_a_budget(mlcd: Mlcd, recorded: str) -> None:
    mlcd("serve", "net_a", "--on", recorded, "--latency-p95", "0.1ms", "--trials", "1")
    answer = mlcd("resume", "last")
    assert answer.code == 2
    assert "nothing that was tried keeps p95 <= 0.1 ms" in answer.err
    assert "--budget" not in answer.err


def test_caps_of_a_service_mean_nothing_to_a_training_run(mlcd: Mlcd, write_job: Callable[..., Path]) -> None:
    mlcd("train", write_job(), "-y")
    answer = mlcd("what-if", "last", "--latency-p95", "5ms")
    assert answer.code == 2
    assert "mlcd serve" in answer.err


def test_a_language_model_is_served_by_tokens(mlcd: Mlcd, tmp_path: Path) -> None:
    on = f"recorded:{write_language(tmp_path / 'llm')}"
    answer = mlcd("serve", "small", "--on", on, "--itl-p95", "60ms", "--trials", "4", "-o", "json")
    assert answer.document["decision"]["configuration"] is not None
    broken = mlcd("serve", "small", "--on", on, "--itl-p95", "10ms", "--trials", "4")
    assert broken.code == 3


def test_no_export_is_named_for_a_recorded_language_model_since_none_is_possible(mlcd: Mlcd, tmp_path: Path) -> None:
    on = f"recorded:{write_language(tmp_path / 'llm')}"
    told = mlcd("serve", "small", "--on", on, "--itl-p95", "60ms", "--trials", "4")
    assert told.code == 0
    assert "mlcd export" not in told.out
    assert "A recording has no model to deploy" in told.out


def test_a_recorded_engine_is_not_called_one_that_was_running(mlcd: Mlcd, tmp_path: Path) -> None:
    on = f"recorded:{write_engines(tmp_path / 'engines')}"
    assert mlcd("serve", "small", "--on", on, "--trials", "2").code == 0
    for command in (["export", "last", "--to", "vllm"], ["deploy", "last"]):
        assert "replayed a recording, which has no engine to start" in mlcd(*command).complaint


def test_a_training_run_is_not_told_to_deploy_by_exporting(mlcd: Mlcd, write_job: Callable[..., Path]) -> None:
    mlcd("train", write_job(), "-y")
    assert "trains a job, and serves no model" in mlcd("deploy", "last").complaint


def test_a_service_is_exported_and_not_launched(mlcd: Mlcd, recorded: str) -> None:
    told = mlcd("serve", "net_a", "--on", recorded, "--trials", "2")
    assert "mlcd export" in told.out
    answer = mlcd("launch", "last")
    assert answer.code == 2
    assert "mlcd export" in answer.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["net_z"], "recorded model 'net_z'"),
        (["net_a", "--latency-p95", "soon"], "expected a latency, such as 30ms"),
        (["net_a", "--latency-p95", "-3ms"], "expected a latency"),
        (
            ["net_a", "--latency-p95", "20"],
            "'20': expected a latency, such as 30ms or 1.5s (a number alone has no unit)",
        ),
        (
            ["net_a", "--ttft-p95", "200ms"],
            "--ttft-p95: trials of net_a do not measure this; use --latency-p50, --latency-p95 or --latency-p99",
        ),
        (["net_a", "--tpot-p50", "20ms"], "--tpot-p50: trials of net_a do not measure this"),
        (["net_a", "--itl-p95", "20ms"], "--itl-p95: trials of net_a do not measure this"),
        (["net_a", "--min-rps", "0"], "min-rps"),
        (["net_a", "--method", "magic"], "magic"),
        (["net_a", "--knobs", "nowhere.yaml"], "nowhere.yaml: no such file"),
        (["net_a", "--shape", "sequence"], "such as sequence=128"),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_written(mlcd: Mlcd, recorded: str, words: list[str], told: str) -> None:
    answer = mlcd("serve", *words, "--on", recorded)
    assert answer.code == 2
    assert told in answer.err
    assert len(answer.err.strip().splitlines()) == 1
    assert mlcd("runs", "-o", "json").document["runs"] == []


def test_an_unknown_place_is_told(mlcd: Mlcd, tmp_path: Path) -> None:
    answer = mlcd("serve", "net_a", "--on", "recorded:" + str(tmp_path))
    assert answer.code == 2
    assert "no recorded load tests" in answer.err


LIVE = "knobs: {{{KNOBS}}}\nprice: {{base: 0.04}}\n"


@pytest.mark.parametrize(
    ("knobs", "told"),
    [
        ("batch: [1], threads: [4096]", "threads 4096: this machine has"),
        ("batch: [1], sm_share: [50]", "unknown knob of the embedded server 'sm_share'"),
        ("batch: [1], memory_gb: [0.0000001]", "the model's weights alone are"),
        ("batch: [1, 2, 8]", "batch 8: the model is exported for a batch of 2"),
    ],
)
def test_knobs_that_contradict_the_machine_or_the_model_are_one_line(
    mlcd: Mlcd, tmp_path: Path, knobs: str, told: str
) -> None:
    pytest.importorskip("onnxruntime", reason="pip install mlcd[serve]")
    from mlcd_bench.learn.zoo import cnn

    model = cnn((4,), size=8)
    for each in (*model.graph.input, *model.graph.output):
        each.type.tensor_type.shape.dim[0].dim_value = 2
    (tmp_path / "fixed.onnx").write_bytes(model.SerializeToString())
    (tmp_path / "knobs.yaml").write_text(LIVE.format(KNOBS=knobs))
    answer = mlcd("serve", tmp_path / "fixed.onnx", "--knobs", tmp_path / "knobs.yaml")
    assert answer.code == 2
    assert told in answer.err
    assert mlcd("runs", "-o", "json").document["runs"] == []


@pytest.mark.parametrize("figure", ["ttft", "tpot", "itl"])
def test_an_onnx_model_cannot_be_held_to_times_of_tokens(mlcd: Mlcd, tmp_path: Path, figure: str) -> None:
    pytest.importorskip("onnxruntime", reason="pip install mlcd[serve]")
    from mlcd_bench.learn.zoo import cnn

    (tmp_path / "net.onnx").write_bytes(cnn((4,), size=8).SerializeToString())
    answer = mlcd("serve", tmp_path / "net.onnx", f"--{figure}-p95", "20ms", "--trials", "1")
    assert answer.code == 2
    assert (
        f"--{figure}-p95: trials of net do not measure this; use --latency-p50, --latency-p95 or --latency-p99"
        in answer.err
    )
    assert len(answer.err.strip().splitlines()) == 1
    assert mlcd("runs", "-o", "json").document["runs"] == []


def test_an_endpoint_that_is_down_is_one_line_before_anything_is_tried(mlcd: Mlcd, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="pip install mlcd[serve]")
    from mlcd_bench.learn.zoo import cnn

    (tmp_path / "net.onnx").write_bytes(cnn((4,), size=8).SerializeToString())
    knobs = "knobs: {concurrency: [1]}\nprice: {base: 0.04}\nserver: {url: 'http://127.0.0.1:9', model: m}\n"
    (tmp_path / "knobs.yaml").write_text(knobs)
    answer = mlcd("serve", tmp_path / "net.onnx", "--knobs", tmp_path / "knobs.yaml")
    assert answer.code == 2
    assert "connection refused" in answer.err
    assert mlcd("runs", "-o", "json").document["runs"] == []


def test_a_server_that_a_command_starts_need_not_be_there_before(mlcd: Mlcd, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="pip install mlcd[serve]")
    from mlcd_bench.learn.zoo import cnn

    (tmp_path / "net.onnx").write_bytes(cnn((4,), size=8).SerializeToString())
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = (
        f"exec {sys.executable} -m mlcd.clouds.servers {tmp_path}/net.onnx --name net --port {port} --batch {{batch}}"
    )
    knobs = {
        "knobs": {"batch": [2]},
        "price": {"base": 0.04},
        "trial": "8s",
        "server": {"url": f"http://127.0.0.1:{port}", "model": "net", "command": command},
    }
    (tmp_path / "knobs.yaml").write_text(json.dumps(knobs))
    answer = mlcd("serve", tmp_path / "net.onnx", "--knobs", tmp_path / "knobs.yaml", "--trials", "1", "-o", "json")
    assert answer.code == 0, answer.err
    assert [trial["knobs"] for trial in answer.document["trials"]] == [{"batch": 2}]


@pytest.mark.parametrize(
    ("asked", "told", "tried"),
    [
        pytest.param([], "int8 was not checked: compare its answers", {"int8"}, marks=pytest.mark.night),
        (["--samples", "in.npz", "--min-agreement", "0.01"], "int8 was checked: same top class as fp32 on ", {"int8"}),
        pytest.param(
            ["--samples", "in.npz", "--min-agreement", "1"],
            "int8 was not tried: same top class as fp32 on ",
            {"fp32"},
            marks=pytest.mark.night,
        ),
    ],
)
def test_an_answer_at_int8_says_what_is_known_of_its_answers(
    mlcd: Mlcd, tmp_path: Path, asked: list[str], told: str, tried: set[str]
) -> None:
    pytest.importorskip("onnxruntime", reason="pip install mlcd[serve]")
    import numpy as np

    from mlcd_bench.learn.zoo import cnn

    (tmp_path / "net.onnx").write_bytes(cnn((4,), size=8).SerializeToString())
    np.savez(tmp_path / "in.npz", image=np.random.default_rng(0).standard_normal((5000, 3, 8, 8), dtype=np.float32))
    precisions = "int8, fp32" if "fp32" in tried else "int8"
    knobs = f"knobs: {{precision: [{precisions}], batch: [1]}}\nprice: {{base: 0.04}}\ntrial: 40s\n"
    (tmp_path / "knobs.yaml").write_text(knobs)
    answer = mlcd("serve", "net.onnx", "--knobs", "knobs.yaml", "--trials", "1", *asked)
    assert answer.code == 0, answer.err
    assert told in answer.out
    document = mlcd("show", "last", "-o", "json").document
    assert {trial["knobs"]["precision"] for trial in document["trials"]} == tried
    assert (document["decision"]["accuracy"] or told).startswith(told)
    assert (document["agreement"] is not None) == bool(asked)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (["--min-agreement", "0.9"], "--min-agreement needs --samples"),
        (["--samples", "none.npz"], "none.npz: no such file or folder"),
        (["--samples", "none.npz", "--knobs", "fp32.yaml"], "int8 is not in the knobs file"),
        (["--samples", "none.npz", "--on", "recorded:here"], "leave out --on recorded and --server"),
    ],
)
def test_a_comparison_that_cannot_be_made_is_one_line(mlcd: Mlcd, tmp_path: Path, asked: list[str], told: str) -> None:
    pytest.importorskip("onnxruntime", reason="pip install mlcd[serve]")
    from mlcd_bench.learn.zoo import cnn

    (tmp_path / "net.onnx").write_bytes(cnn((4,), size=8).SerializeToString())
    (tmp_path / "fp32.yaml").write_text("knobs: {precision: [fp32]}\nprice: {base: 0.04}\n")
    answer = mlcd("serve", "net.onnx", *asked)
    assert answer.code == 2
    assert told in answer.err
    assert len(answer.err.strip().splitlines()) == 1
