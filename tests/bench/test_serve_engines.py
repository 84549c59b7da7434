"""mlcd bench serve on recorded engines: its answer has the stated form, and shares are what a reader would compute."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mlcd_fixtures.recorded_services import write_engines

from mlcd.planners.serve.llm.recording import read_engines
from mlcd_bench.baselines.serve import aiconfigurator
from mlcd_bench.serve import EngineRun, engine_problems, engine_summary, play_engines
from mlcd_bench.serve.engines import CAPS_MS

Mlcd = Callable[..., Any]
METHODS = ("random", "popular", "portfolio", "nearest", "gp-ei", "roofline")
RUN_KEYS = {"model", "isl", "osl", "caps", "method", "seed", "trials", "chosen", "optimum", "share"}
TRIAL_KEYS = {"row", "ttft_ms", "tpot_ms", "tokens_per_usd", "keeps_caps"}


def rows_of(folder: Path) -> list[dict[str, str]]:
    with (folder / "points.csv").open() as file:
        return list(csv.DictReader(file))


def tokens_per_usd(row: dict[str, str]) -> float:
    return 3_600 * float(row["tokens_per_s_per_gpu"]) / float(row["usd_per_hour"])


def keeps(row: dict[str, str], caps: dict[str, float | None]) -> bool:
    return all(most is None or float(row[name]) <= most for name, most in caps.items())


def is_of(row: dict[str, str], run: EngineRun) -> bool:
    return (row["model"], int(row["isl"]), int(row["osl"])) == (run.model, run.isl, run.osl) and row["latest"] == "1"


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("sweeps", [False, True])
def test_a_run_equals_a_recomputation_from_the_rows(tmp_path: Path, method: str, sweeps: bool) -> None:
    rows, folder = rows_of(write_engines(tmp_path)), read_engines(tmp_path)
    folder = folder.swept() if sweeps else folder
    for problem in engine_problems(folder, folder.models, 4, one_by_one=True):
        run = play_engines(problem, method, 0, 0.0)
        open_ = {i: row for i, row in enumerate(rows, start=1) if is_of(row, run) and keeps(row, run.caps)}
        assert run.optimum == max(open_, key=lambda i: tokens_per_usd(open_[i]))
        shown: list[int] = []
        for trial, chosen, share in zip(run.trials, run.chosen, run.share, strict=True):
            row = rows[trial["row"] - 1]
            assert is_of(row, run)
            assert trial["ttft_ms"] == pytest.approx(float(row["ttft_ms"]))
            assert trial["tpot_ms"] == pytest.approx(float(row["tpot_ms"]))
            assert trial["tokens_per_usd"] == pytest.approx(tokens_per_usd(row), rel=1e-6)
            assert trial["keeps_caps"] is keeps(row, run.caps)
            shown += trial.get("rows", [trial["row"]])
            best = max((i for i in shown if i in open_), key=lambda i: tokens_per_usd(open_[i]), default=None)
            assert chosen == best
            expected = tokens_per_usd(open_[best]) / tokens_per_usd(open_[run.optimum]) if best is not None else 0.0
            assert share == pytest.approx(expected)


def test_every_workload_is_searched_under_each_pair_of_caps_that_some_row_keeps(tmp_path: Path) -> None:
    rows, folder = rows_of(write_engines(tmp_path)), read_engines(tmp_path)
    asked = [
        play_engines(problem, "popular", 0, 0.0)
        for problem in engine_problems(folder, folder.models, 1, one_by_one=True)
    ]
    expected = [
        (model.facts.title, caps)
        for model in folder.knowledge.models
        for caps in CAPS_MS
        if any(
            row["latest"] == "1" and f"{row['model']}@{row['isl']}/{row['osl']}" == model.facts.title
            and keeps(row, dict(zip(("ttft_ms", "tpot_ms"), caps, strict=True)))
            for row in rows
        )
    ]  # fmt: skip
    assert [
        (f"{run.model}@{run.isl}/{run.osl}", (run.caps["ttft_ms"], run.caps["tpot_ms"])) for run in asked
    ] == expected


def test_a_model_is_hidden_with_all_its_workloads(tmp_path: Path) -> None:
    folder = read_engines(write_engines(tmp_path))
    for problem in engine_problems(folder, folder.models, 1, one_by_one=True):
        assert problem.model.facts.name not in {each.facts.name for each in problem.knowledge.models}
    together = engine_problems(folder, ["tiny", "small"], 1, one_by_one=False)
    assert {each.facts.name for problem in together for each in problem.knowledge.models} == {"mixed"}


def test_a_sweep_shows_more_than_a_point(tmp_path: Path) -> None:
    points = read_engines(write_engines(tmp_path))
    after_one = [
        engine_summary([play_engines(each, "random", 0, 0.0) for each in problems], 1)[0]["share"][0]
        for problems in (engine_problems(f, f.models, 1, one_by_one=True) for f in (points, points.swept()))
    ]
    assert after_one[0] < after_one[1]


def test_the_summary_is_the_mean_over_runs() -> None:
    runs = [
        EngineRun("a", 1, 1, {"ttft_ms": None, "tpot_ms": None}, "m", 0, [{}, {}], [None, 1], 1, [0.0, 1.0]),
        EngineRun("b", 1, 1, {"ttft_ms": 500, "tpot_ms": 15}, "m", 0, [{}], [2], 3, [0.5]),
    ]
    (row,) = engine_summary(runs, 2)
    assert row["share"] == [0.25, 0.75]
    assert row["by_caps"] == {"no caps": [0.0, 1.0], "TTFT 500, TPOT 15 ms": [0.5, 0.5]}
    assert (row["worst"], row["worst_model"]) == (0.5, "b")


def test_the_json_has_the_documented_form(mlcd: Mlcd, tmp_path: Path) -> None:
    folder = write_engines(tmp_path / "recorded")
    words = ["bench", "serve", folder, "--method", "popular,roofline", "--seeds", "2", "--processes", "1", "-o", "json"]
    document = mlcd(*words, "--unseen", "tiny").document
    assert set(document["runs"][0]) == RUN_KEYS
    assert set(document["runs"][0]["trials"][0]) == TRIAL_KEYS
    assert document["runs"][0]["caps"] == {"ttft_ms": None, "tpot_ms": None}
    assert {run["model"] for run in document["runs"]} == {"tiny"}
    assert {run["seed"] for run in document["runs"]} == {0, 1}
    assert document["setting"]["trials"] == 6
    swept = mlcd(*words, "--sweeps").document
    assert set(swept["runs"][0]["trials"][0]) == {*TRIAL_KEYS, "rows"}


def test_the_table_has_a_line_for_each_method_and_caps(mlcd: Mlcd, tmp_path: Path) -> None:
    answer = mlcd("bench", "serve", write_engines(tmp_path), "--method", "popular", "--seeds", "1", "--processes", "1")
    assert answer.code == 0
    assert "AFTER 3" in answer.out
    assert "TTFT 500, TPOT 15 ms" in answer.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--latency-ms", "30"], "have fixed caps"),
        (["--noise", "0.1"], "no noise"),
        (["--unseen", "tinny"], "tiny"),
        (["--method", "falcon"], "falcon"),
    ],
)
def test_a_mistake_is_one_line(mlcd: Mlcd, tmp_path: Path, words: list[str], said: str) -> None:
    answer = mlcd("bench", "serve", write_engines(tmp_path), *words)
    assert answer.code == 2
    assert said in answer.err
    assert len(answer.err.strip().splitlines()) == 1


@pytest.mark.skipif(aiconfigurator.is_installed(), reason="aiconfigurator is installed here")
def test_what_is_not_installed_is_refused_with_what_to_install(mlcd: Mlcd, tmp_path: Path) -> None:
    answer = mlcd("bench", "serve", write_engines(tmp_path), "--method", "aiconfigurator")
    assert answer.code == 2
    assert answer.err.strip() == "mlcd: aiconfigurator is not installed: pip install 'mlcd[aiconfigurator]'"


FAKE = """
from types import SimpleNamespace

def cli_estimate(model_path, system_name, *, batch_size, tp_size, **rest):
    if model_path != "maker/tiny" or system_name == "l4":
        raise RuntimeError("no data of that")
    return SimpleNamespace(ttft=10.0, tpot=20.0 if batch_size == 8 else 400.0)
"""
"""In place of NVIDIA's package: it knows one model, on one kind of GPU."""


@pytest.fixture
def fake_aiconfigurator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if aiconfigurator.is_installed():
        pytest.skip("aiconfigurator itself is installed here")
    for file, text in {
        "aiconfigurator/__init__.py": "",
        "aiconfigurator/cli/__init__.py": "",
        "aiconfigurator/cli/api.py": FAKE,
        "aiconfigurator_core/__init__.py": "",
        "aiconfigurator_core/model_configs/maker--tiny_config.json": "{}",
    }.items():
        (tmp_path / "packages" / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "packages" / file).write_text(text)
    monkeypatch.syspath_prepend(tmp_path / "packages")
    yield
    for name in [each for each in sys.modules if each.startswith("aiconfigurator")]:
        del sys.modules[name]


@pytest.mark.usefixtures("fake_aiconfigurator")
def test_aiconfigurators_order_is_followed_and_unknown_configurations_come_last(tmp_path: Path) -> None:
    folder = read_engines(write_engines(tmp_path / "recorded"))
    problem = engine_problems(folder, ["tiny"], 6, one_by_one=True)[0]
    rows = [trial["row"] for trial in play_engines(problem, "aiconfigurator", 0, 0.0).trials]
    assert rows[0] == 6, "the H100 with 8 requests at once: fastest by far"
    assert set(rows[3:]) == {2, 3, 4}, "the L4, of which it has no data"
