"""An engine's start command, crash diagnosis, metrics and version."""

from __future__ import annotations

import os
import sys

import pytest

from mlcd.clouds.engines import ENGINES
from mlcd.clouds.engines.crash import crashed
from mlcd.clouds.engines.default_knobs import default_knob_table
from mlcd.clouds.engines.metrics import read_metrics
from mlcd.clouds.engines.start import installed_version, start_of
from mlcd.clouds.local.gpus import Gpu, UsableGpus
from mlcd.clouds.places.serve.engines import engine_space
from mlcd.clouds.serving.trial import Timing
from mlcd.core.errors import UserError
from mlcd.core.measurement import Outcome
from mlcd.planners.serve.llm.nouns import Engine, EngineLoad, LanguageModel
from mlcd.planners.serve.model_facts import ModelFacts
from mlcd.planners.serve.nouns import KnobTable, ServingTask, knobs_of

VLLM_CRASH = """\
(APIServer pid=22646) INFO 11-18 17:44:29 [utils.py:325] vLLM API server version 0.32.0
(EngineCore pid=71) ERROR 11-18 17:44:31 [core.py:1] Traceback (most recent call last):
(EngineCore pid=71) ERROR 11-18 17:44:31 [core.py:1] ValueError: Model architectures ['Nope'] are not supported
(APIServer pid=22646) Traceback (most recent call last):
(APIServer pid=22646) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}
"""


def test_the_error_that_the_others_follow_from_is_told_without_times_and_processes():
    ended = crashed(3.0, 1, VLLM_CRASH)
    assert ended.outcome is Outcome.FAILED
    assert ended.detail == "the engine crashed: ValueError: Model architectures ['Nope'] are not supported"
    later = VLLM_CRASH.replace("17:44", "18:01").replace("pid=71", "pid=99")
    assert crashed(9.0, 1, later).detail == ended.detail


@pytest.mark.parametrize(
    "output",
    [
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB",
        "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`",
        "ValueError: Available memory on node 0 (1/2 GiB) on kv cache allocation is less than requested memory for kv",
    ],
)
def test_a_lack_of_memory_is_told_apart(output):
    assert crashed(1.0, 1, output).outcome is Outcome.OUT_OF_MEMORY


def test_an_engine_that_the_system_killed_lacked_memory():
    assert crashed(1.0, -9, "loading").outcome is Outcome.OUT_OF_MEMORY


def test_an_engine_that_ends_without_a_word_says_so():
    assert "without any output" in crashed(1.0, 3, "").detail


def test_metrics_of_replicas_are_added_and_the_fullest_cache_counts():
    text = """\
# HELP vllm:num_requests_running Number of requests
vllm:num_requests_running{engine="0",model_name="m"} 3.0
vllm:num_requests_running{engine="1",model_name="m"} 4.0
vllm:kv_cache_usage_perc{engine="0"} 0.25
vllm:kv_cache_usage_perc{engine="1"} 0.5
vllm:odd{engine="1"} what
"""
    assert ENGINES["vllm"].load(read_metrics(text)) == EngineLoad(running=7.0, kv_cache=0.5)


def test_the_load_of_a_while_is_the_most_of_each_and_the_preemptions_in_it():
    loads = [EngineLoad(1, 0, 0.1, 5), None, EngineLoad(4, 2, 0.9, 8)]
    assert EngineLoad.of_all(loads) == EngineLoad(4, 2, 0.9, 3)
    assert EngineLoad.of_all([None]) is None


def test_an_engine_is_started_with_its_knobs_where_it_will_answer():
    start = start_of(Engine("vllm"), "org/model", {"tp": 2, "sequences": 8, "block_size": 16})
    assert start.command.startswith("vllm serve org/model --host 127.0.0.1 --port ")
    assert start.command.endswith("--tensor-parallel-size 2 --max-num-seqs 8 --block-size 16")
    assert start.url == f"http://127.0.0.1:{start.command.split('--port ')[1].split()[0]}"


def test_a_command_of_ones_own_stays_a_line_of_the_shell():
    engine = Engine("vllm", "X=$HOME vllm serve {model} --port {port} && echo done", url="http://h:1")
    start = start_of(engine, "m", {"batch": 4})
    assert start.command.startswith("X=$HOME vllm serve m --port ")
    assert start.url == "http://h:1"


def test_threads_hold_the_whole_engine_to_so_many_cores():
    start = start_of(Engine("vllm"), "m", {"threads": 1})
    core = start.environment["VLLM_CPU_OMP_THREADS_BIND"]
    assert f"taskset -c {core} " in start.command
    assert start.environment["OMP_NUM_THREADS"] == "1"


def test_nothing_is_downloaded_for_a_model_that_is_a_folder_here(tmp_path, monkeypatch):
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    assert start_of(Engine("vllm"), str(tmp_path), {}).environment["HF_HUB_OFFLINE"] == "1"
    assert "HF_HUB_OFFLINE" not in start_of(Engine("vllm"), "org/model", {}).environment


def test_the_version_is_that_of_the_package_beside_the_program(tmp_path, monkeypatch):
    program = tmp_path / "vllm"
    program.write_text(f"#!{sys.executable}\n", encoding="utf-8")
    program.chmod(0o755)
    site = tmp_path / "site"
    (site / "vllm-9.9+cpu.dist-info").mkdir(parents=True)
    (site / "vllm-9.9+cpu.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: vllm\nVersion: 9.9+cpu\n")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(site))
    assert installed_version(ENGINES["vllm"]) == "9.9+cpu"
    with pytest.raises(UserError, match="'/nowhere/vllm' is not installed: pip install vllm"):
        installed_version(ENGINES["vllm"], "/nowhere/vllm serve")


def test_on_gpus_the_usual_knobs_are_powers_of_two_of_them_at_a_price_that_is_asked_for():
    gpus = tuple(Gpu(f"GPU-{i}", "NVIDIA H100 80GB HBM3", 81_559, 0, 0.0) for i in range(3))
    table = default_knob_table("vllm", UsableGpus(gpus), 2.5)
    assert table.knobs["gpus"] == table.knobs["tp"] == (1, 2)
    assert table.knobs["precision"] == ("bf16", "fp8")
    assert table.usd_per_hour == {"gpus": 2.5}
    with pytest.raises(UserError, match="the price of a GPU is missing"):
        default_knob_table("vllm", UsableGpus(gpus), None)


def test_without_gpus_cores_and_memory_vary():
    table = default_knob_table("vllm", UsableGpus((), "none"), None)
    assert set(table.knobs) == {"threads", "precision", "batched_tokens", "sequences", "kv_cache_gb", "eager"}
    assert max(map(float, table.knobs["threads"])) == os.cpu_count()


def test_a_trial_reserves_the_start_the_sweep_and_the_end():
    language = LanguageModel(Engine("vllm"), sweep=(1, 2))
    table = KnobTable({"gpus": (1, 2), "tp": (1, 2), "dp": (1, 2)}, {"gpus": 2.5}, gpus="gpus")
    task = ServingTask(ModelFacts("m"), table=table, trial_s=40.0, language=language)
    space = engine_space(task, Timing(startup_s=300.0))
    assert space.probe_time.base_s == 300.0 + 40.0 + Timing().teardown_s
    settings = [dict(knobs_of(each)) for each in space.configurations]
    assert all(each["tp"] * each["dp"] == each["gpus"] for each in settings)
    assert len(settings) == 3
    assert {each.offer.accelerators for each in space.configurations} == {1, 2}


def test_every_engine_has_a_program_and_a_way_to_install_it():
    assert [*ENGINES] == ["vllm", "sglang", "trtllm", "llama.cpp"]
    assert all(kind.program and kind.install for kind in ENGINES.values())


def test_a_command_that_takes_the_gpus_itself_is_tried_with_each_number_of_them():
    table = KnobTable({"gpus": (1, 2, 8)}, {"gpus": 2.5}, gpus="gpus")
    own = LanguageModel(Engine(command="./start.sh {model} --port {port} --gpus {gpus}"))
    space = engine_space(ServingTask(ModelFacts("m"), table=table, trial_s=60.0, language=own), Timing())
    assert [dict(knobs_of(each))["gpus"] for each in space.configurations] == [1, 2, 8]
