"""mlcd serve of a language model: by an engine, or at an endpoint; and everything that cannot work, in one line."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mlcd_fixtures.fake_engine import fake_vllm
from mlcd_fixtures.openai_server import Timing, in_thread
from mlcd_fixtures.tiny_llama import tiny_llama

Mlcd = Callable[..., Any]
SHORT = ("--input-tokens", "8", "--output-tokens", "8", "--sweep", "1,4")


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{fake_vllm(tmp_path / 'bin')}:{os.environ['PATH']}")
    return tiny_llama(tmp_path / "tiny")


def knobs_file(folder: Path, **more: Any) -> Path:
    knobs = {"threads": [1], "precision": ["bf16", "fp32"], **more.pop("knobs", {})}
    engine = {"name": "vllm", "startup": "20s", **more.pop("engine", {})}
    written = {"knobs": knobs, "price": {"threads": 0.04}, "trial": "6s", "engine": engine, **more}
    (folder / "knobs.yaml").write_text(json.dumps(written), encoding="utf-8")
    return folder / "knobs.yaml"


@pytest.mark.live
def test_it_searches_decides_and_can_be_asked_again(mlcd: Mlcd, model: Path, tmp_path: Path) -> None:
    caps = ("--tpot-p50", "50ms", "--ttft-p50", "500ms", "--budget", "1")
    knobs = ("--knobs", knobs_file(tmp_path, knobs={"precision": ["fp32"]}))
    answer = mlcd("serve", "--model", model, *knobs, *SHORT, *caps, "--method", "exhaustive")
    assert answer.code == 0, answer.err
    assert "with up to 4 requests at once" in answer.out
    assert "a million tokens" in answer.out
    assert "precision fp32" in answer.out
    document = mlcd("show", "last", "-o", "json").document
    assert document["counted"] == "tokens"
    assert document["spent_usd"] < 1
    four_s = document["trials"][0]["figures"]["tpot_p50"]
    tight = mlcd("what-if", "last", "--tpot-p50", f"{700 * four_s:.4f}ms")
    assert "with up to 1 request at once" in tight.out, "one at once takes half of what each of four takes"
    report = mlcd("report", "last", "--to", tmp_path / "report.html")
    assert report.code == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Requests at once on" in page
    assert "KV cache" in page


@pytest.mark.live
def test_caps_that_nothing_keeps_end_with_3_and_the_closest(mlcd: Mlcd, model: Path, tmp_path: Path) -> None:
    knobs = ("--knobs", knobs_file(tmp_path))
    answer = mlcd("serve", model, *knobs, *SHORT, "--tpot-p95", "0.1ms", "--trials", "1")
    assert answer.code == 3
    assert "the closest" in answer.out
    assert "has tpot_p95" in answer.out


@pytest.mark.live
def test_an_endpoint_is_measured_as_it_is(mlcd: Mlcd) -> None:
    with in_thread(Timing(step_s=0.002)) as url:
        answer = mlcd("serve", "--endpoint", url, "--price", "2.5", *SHORT, "--tpot-p95", "50ms")
    assert answer.code == 0, answer.err
    assert "no configuration is expected" not in answer.err, "there is nothing to search"
    assert "mlcd replicas fake-1 --rate 40" in answer.out
    assert "mlcd deploy" not in answer.out
    document = mlcd("show", "last", "-o", "json").document
    assert document["decision"]["configuration"]["knobs"] == {"endpoint": url}
    assert document["trials"][0]["usd_per_hour"] == 2.5
    assert "an engine that runs already" in mlcd("deploy", "last").err
    replicas = mlcd("replicas", "last", "--rate", "1")
    assert replicas.code == 0
    assert "mlcd export" not in replicas.out


@pytest.mark.live
@pytest.mark.parametrize("bad", ["garbage", "close", "too_many"])
def test_an_endpoint_that_does_not_work_is_one_line_and_costs_nothing(mlcd: Mlcd, bad: str) -> None:
    with in_thread(Timing(step_s=0.001, bad=bad)) as url:
        answer = mlcd("serve", "--endpoint", url, "--price", "2.5", *SHORT)
    assert answer.code == 2
    assert len(answer.err.strip().splitlines()) == 1
    assert url in answer.err


@pytest.mark.live
def test_an_endpoint_that_answers_one_request_and_not_two_says_why_it_cannot_be_measured(mlcd: Mlcd) -> None:
    with in_thread(Timing(step_s=0.002, most=1)) as url:
        answer = mlcd("serve", "--endpoint", url, "--price", "2.5", *SHORT[:-1], "4,8")
    assert answer.code == 2
    assert "no trial could serve the model: requests failed: HTTP 429: too many requests" in answer.out


@pytest.mark.live
def test_an_engine_that_stalls_everywhere_is_given_up_after_two(mlcd: Mlcd, model: Path, tmp_path: Path) -> None:
    file = knobs_file(tmp_path, knobs={"bad": ["stall"], "sequences": [1, 2]}, engine={"startup": "3s"}, trial="2s")
    answer = mlcd("serve", model, "--knobs", file, *SHORT)
    assert answer.code == 2
    assert "none of 2 trials could serve the model: every request failed: no answer within 2 s" in answer.out


@pytest.mark.live
def test_an_engine_that_crashes_everywhere_is_given_up_after_two(mlcd: Mlcd, model: Path, tmp_path: Path) -> None:
    file = knobs_file(tmp_path, knobs={"crash": ["RuntimeError: no such layer"], "sequences": [1, 2, 4]})
    answer = mlcd("serve", model, "--knobs", file, *SHORT, "--method", "random")
    assert answer.code == 2
    assert "none of 2 trials could serve the model: the engine crashed: RuntimeError: no such layer" in answer.out


def test_a_folder_without_a_config_is_no_language_model(mlcd: Mlcd, tmp_path: Path) -> None:
    refused(mlcd("serve", tmp_path, "--engine", "vllm"), "config.json: no such file")


def test_a_model_without_a_tokenizer_is_refused(mlcd: Mlcd, model: Path, tmp_path: Path) -> None:
    for file in model.glob("tokenizer*"):
        file.unlink()
    refused(mlcd("serve", model, "--knobs", knobs_file(tmp_path), *SHORT), "it has no tokenizer")


def test_a_folder_that_is_not_there_is_not_taken_for_a_name(mlcd: Mlcd, model: Path, tmp_path: Path) -> None:
    refused(mlcd("serve", "--model", "./nothere", "--knobs", knobs_file(tmp_path), *SHORT), "./nothere: no such folder")


def test_gpus_that_no_setting_uses_are_refused_and_not_left_out(mlcd: Mlcd, model: Path, tmp_path: Path) -> None:
    of = {"knobs": {"gpus": [1, 8], "sequences": [8]}, "price": {"gpus": 2.5}, "engine": {"name": "vllm"}}
    (tmp_path / "knobs.yaml").write_text(json.dumps(of), encoding="utf-8")
    answer = mlcd("serve", model, "--knobs", tmp_path / "knobs.yaml", *SHORT)
    refused(answer, "gpus 8: no configuration uses that many: tp x pp x dp must be 8")


def test_an_engine_that_is_not_installed_says_how_to_install_it(mlcd: Mlcd, model: Path) -> None:
    refused(mlcd("serve", model, "--engine", "trtllm"), "'trtllm-serve' is not installed: pip install tensorrt-llm")


def test_an_engine_that_nobody_knows_gets_a_suggestion(mlcd: Mlcd, model: Path) -> None:
    refused(mlcd("serve", model, "--engine", "vlm"), "did you mean 'vllm'")


def test_a_file_of_prompts_that_is_not_there_is_told_before_anything_is_started(
    mlcd: Mlcd, model: Path, tmp_path: Path
) -> None:
    refused(mlcd("serve", model, "--knobs", knobs_file(tmp_path), "--prompts", "no.jsonl"), "no.jsonl: No such file")


def test_requests_that_are_longer_than_the_model_takes_are_refused(mlcd: Mlcd, model: Path, tmp_path: Path) -> None:
    answer = mlcd("serve", model, "--knobs", knobs_file(tmp_path), "--input-tokens", "5000")
    refused(answer, "the model takes at most 2048")


def test_a_model_that_does_not_fit_is_refused_before_anything_is_spent(mlcd: Mlcd, model: Path, tmp_path: Path) -> None:
    file = knobs_file(tmp_path, knobs={"kv_cache_gb": [1_000_000]})
    refused(mlcd("serve", model, "--knobs", file, *SHORT), "no configuration fits: it needs at least 1,000,001")


@pytest.mark.parametrize(
    "options, words",
    [
        (("--endpoint", "http://127.0.0.1:9"), "connection refused"),
        (("m", "--endpoint", "http://127.0.0.1:9"), "give its price an hour"),
        (("m", "--endpoint", "localhost:9", "--price", "1"), "expected the address of a server"),
        (("m", "--endpoint", "http://h", "--engine", "vllm"), "give only one of them"),
        (("--engine", "vllm"), "no model given"),
        ((), "no model given"),
        (("model.onnx", "--input-tokens", "8"), "--input-tokens is for a language model"),
        (("a", "--model", "b"), "two models"),
        (("m", "--engine", "vllm", "--sweep", "0"), "concurrent requests"),
    ],
)
def test_options_that_contradict_each_other_are_one_line(
    mlcd: Mlcd, model: Path, options: tuple[str, ...], words: str
) -> None:
    refused(mlcd("serve", *options), words)


def refused(answer: Any, words: str) -> None:
    assert answer.code == 2, answer.out + answer.err
    assert words in answer.err
    assert "Traceback" not in answer.err
