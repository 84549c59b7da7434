"""Measuring PyTorch models, tested on the CPU and on a fake device."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="pip install mlcd[frameworks]")

import torch

from mlcd.planners.serve.known_models import read_knowledge
from mlcd_bench.learn import torch_wired
from mlcd_bench.learn.gpu_work import Plan, Work, measure, profile, works
from mlcd_bench.learn.host import preparation, requests_per_s
from mlcd_bench.learn.table import Tables
from mlcd_bench.learn.timing import FEWEST, MOST, timed
from mlcd_bench.learn.torch_device import Cuda
from mlcd_bench.learn.torch_measure import Cells, Loaded, measured
from mlcd_bench.learn.torch_model import TorchModel, fields, images, tokens, vectors
from mlcd_bench.learn.torch_operators import OPERATORS
from mlcd_bench.learn.torch_zoo import MODELS

pytestmark = pytest.mark.night  # PyTorch takes seconds to load; who searches or serves needs none of it
SMALL = "wide_deep_small"


@dataclass
class MadeUp:
    """A device on which a pass takes 10 ms, and some shares do not run."""

    refuses: tuple[int, ...] = ()
    broken_by: tuple[int, ...] = ()
    name: str = "cpu"
    broken: bool = False
    asked: list[int] = field(default_factory=list)

    def limited(self, share: int) -> Any:
        self.asked.append(share)
        self.broken = self.broken or share in self.broken_by
        if share in (*self.refuses, *self.broken_by):
            raise RuntimeError("cuDNN error:\n CUDNN_STATUS_EXECUTION_FAILED")
        return nullcontext()

    def seconds(self, call: Callable[[], object]) -> float:
        call()
        return 0.01

    def forget_peak(self) -> None:
        pass

    def peak_gb(self) -> float | None:
        return 1.5

    def works(self) -> bool:
        return not self.broken


@dataclass(frozen=True)
class MadeUpPlan(Plan):
    made_up: MadeUp = field(default_factory=MadeUp)

    def open(self) -> MadeUp:
        return self.made_up


def plan(folder: Path, **changes: Any) -> MadeUpPlan:
    chosen = {"until": time.monotonic() + 1_000, **changes}
    return MadeUpPlan(Tables(folder, Cells.KNOBS), Cells(("fp32",), (100, 50), (1, 2)), "cpu", **chosen)


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_cell_is_timed_and_a_refused_one_has_a_reason():
    tiny = TorchModel("tiny", "cnn", "", lambda: torch.nn.Linear(3, 2), vectors(3))
    loaded = Loaded(tiny, MadeUp(refuses=(50,)), "fp32")
    ran, refused = measured(loaded, 100, 4), measured(loaded, 50, 4)
    assert ran.row() == pytest.approx({**ran.knobs, "rate": 400, "p50_s": 0.01, "p95_s": 0.01, "peak_gb": 1.5})
    assert loaded.facts["weights_mb"] == 8 * 4 / 2**20
    assert refused.seconds == ()
    assert refused.reason == "cuDNN error: CUDNN_STATUS_EXECUTION_FAILED"


@pytest.mark.parametrize(("seconds", "passes"), [(10.0, FEWEST), (0.01, 15), (1e-9, MOST)])
def test_slow_passes_are_timed_less_often(seconds: float, passes: int):
    assert len(timed(lambda: seconds)) == passes


def test_what_was_measured_is_not_measured_again(tmp_path: Path):
    told: list[Any] = []
    measure(Work((SMALL,)), plan(tmp_path), told.append)
    points = rows(tmp_path / "points.csv")
    assert [(row["sm_share"], row["batch"]) for row in points] == [("100", "1"), ("100", "2"), ("50", "1"), ("50", "2")]
    assert not plan(tmp_path).is_done(Work((SMALL,)))
    profile(Work((SMALL,)), plan(tmp_path), told.append)
    assert {row["batch"] for row in rows(tmp_path / "operators.csv")} == {"1"}
    assert plan(tmp_path).is_done(Work((SMALL,)))
    again: list[Any] = []
    measure(Work((SMALL,)), plan(tmp_path), again.append)
    assert again == []
    profile(Work((SMALL,)), plan(tmp_path), again.append)
    assert again == []
    assert rows(tmp_path / "points.csv") == points


def test_after_a_device_error_the_process_ends_and_the_cell_is_recorded(tmp_path: Path):
    broken = plan(tmp_path, made_up=MadeUp(broken_by=(50,)))
    with pytest.raises(SystemExit):
        measure(Work((SMALL,)), broken, lambda told: None)
    assert [row["batch"] for row in rows(tmp_path / "failed.csv")] == ["1"]
    assert broken.left(SMALL, alone=False) == [("fp32", 50, 2)]


def test_after_the_time_is_up_no_cell_begins(tmp_path: Path):
    measure(Work((SMALL,)), plan(tmp_path, until=time.monotonic() - 1), lambda told: None)
    assert not (tmp_path / "points.csv").exists()


def test_single_operators_are_written_to_curves(tmp_path: Path):
    name = "aten::add"
    measure(Work((name,), alone=True), plan(tmp_path), lambda told: None)
    assert [row["rate"] for row in rows(tmp_path / "operator_curves.csv")] == ["100.0", "200.0", "100.0", "200.0"]
    assert not (tmp_path / "points.csv").exists()


def test_a_share_is_the_nearest_group_of_multiprocessors():
    class Whole(Cuda):
        multiprocessors = 132  # of an H200

        def __init__(self) -> None:  # opens no device
            pass

    assert [Whole().part(share) for share in (50, 25, 12, 1)] == [64, 32, 16, 8]


def test_all_models_and_operators_get_their_turn_once():
    found = list(works([model.name for model in MODELS], [each.name for each in OPERATORS]))
    assert [name for work in found if not work.alone for name in work.names] == [model.name for model in MODELS]
    assert [name for work in found if work.alone for name in work.names] == [each.name for each in OPERATORS]
    assert any(work.alone for work in found[:6])


def test_the_zoo_has_at_least_twenty_models_of_five_families():
    assert len({model.name for model in MODELS}) == len(MODELS) >= 22
    families = [model.family for model in MODELS]
    assert {"cnn", "transformer", "rnn", "gan", "recsys"} == set(families)
    assert min(families.count(each) for each in set(families)) >= 5


OWN = {
    "lstm": (lambda: torch_wired.recurrent("LSTM", 50, 4, 6, 2, True), tokens(5, 50), (2, 20)),
    "gru": (lambda: torch_wired.recurrent("GRU", 50, 4, 6, 1), tokens(5, 50), (2, 20)),
    "dcgan": (lambda: torch_wired.dcgan(64, 2, 8), vectors(8, 1, 1), (2, 3, 64, 64)),
    "mlp_gan": (lambda: torch_wired.mlp_gan(8, 4, 12), vectors(8), (2, 12)),
    "pix2pix": (lambda: torch_wired.pix2pix(2, 3), images(16), (2, 3, 16, 16)),
    "super_resolution": (lambda: torch_wired.super_resolution(4, 1), images(4), (2, 3, 16, 16)),
    "detector": (lambda: torch_wired.detector(1), images(64), (2, 125, 2, 2)),
    "ncf": (lambda: torch_wired.neural_filtering(9, 4), fields(2, 0, 9), (2, 1)),
    "dlrm": (lambda: torch_wired.dlrm(3, 4, 7, 8), fields(3, 4, 7), (2, 1)),
    "deepfm": (lambda: torch_wired.deepfm(3, 9, 4, 8), fields(3, 0, 9), (2, 1)),
    "wide_and_deep": (lambda: torch_wired.wide_and_deep(3, 2, 9, 4), fields(3, 2, 9), (2, 1)),
}


@pytest.mark.parametrize("name", OWN)
def test_our_models_have_the_right_output_shapes(name: str):
    build, feed, shape = OWN[name]
    with torch.inference_mode():
        assert build().eval()(*feed(2)).shape == shape


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda each: each.name)
def test_operators_run_at_any_batch(operator: TorchModel):
    if operator.name == "aten::index_select":
        pytest.skip("a table of 256 MB")
    with torch.inference_mode():
        answer = operator.build()(*operator.feed(1))
    assert (answer[0] if isinstance(answer, tuple) else answer).numel() > 0


def test_a_missing_library_only_leaves_out_its_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "torchvision.models", None)
    measure(Work(("resnet18",)), plan(tmp_path), lambda told: None)
    assert {row["reason"][:9] for row in rows(tmp_path / "failed.csv")} == {"not built"}
    assert plan(tmp_path).is_done(Work(("resnet18",)))


def test_the_script_measures_into_a_folder_that_can_be_read(tmp_path: Path):
    asked = f"--to {tmp_path} --device cpu --models {SMALL} --precision fp32 --sm-share 100 --batch 1,2"
    command = [sys.executable, "-m", "mlcd_bench.learn.on_gpu", *asked.split()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout.strip().endswith("left: nothing")
    knowledge = read_knowledge(tmp_path)
    assert [model.facts.name for model in knowledge.models] == [SMALL]
    assert knowledge.models[0].facts.profiles[0].batch == 1
    about = json.loads((tmp_path / "knowledge.json").read_text())
    assert about["anatomy"] == {"cell": ["precision", "sm_share", "batch"], "host": "cpu_cores", "memory": "memory_gb"}
    assert f"torch {torch.__version__}" in about["source"]


def test_requests_are_prepared_in_the_shape_that_a_model_takes():
    assert preparation("image32")().shape == (3, 32, 32)
    text = preparation("tokens16")()
    assert text.shape == (16,)
    assert (text[0], text[-1]) == (101, 102)


def test_a_core_prepares_some_requests_a_second():
    assert requests_per_s("tokens16", 1, window_s=0.05, start="spawn") > 100
