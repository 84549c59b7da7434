"""mlcd curves and mlcd models, for a person and for a program, and with input that is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mlcd_fixtures.reports import tables
from mlcd_fixtures.scale_runs import BATCHES, JOB, NODE, SPACE, curve, elastic_run

from mlcd.core.backend import Provenance
from mlcd.core.job import Fingerprint
from mlcd.core.ledger import Ledger
from mlcd.memory.models import FileModelStore, Identity, Machine, StoredModel
from mlcd.planners.modeling.iteration_time import fit_iteration_time
from mlcd.planners.modeling.performance import NodePrice, PerformanceModel, from_noise
from mlcd.planners.scale.nouns import Mode, ScalingTask

Mlcd = Callable[..., Any]
WriteJob = Callable[..., Path]


@pytest.fixture
def ledger(home: Path) -> Ledger:
    home.mkdir(exist_ok=True)
    return Ledger(home / "ledger.db")


def learned(reference_epochs: float | None = 8.0) -> StoredModel:
    """What a run with made-up step times has learned."""
    nodes, local = np.array([1.0, 2.0, 8.0]), np.array([64.0, 64.0, 128.0])
    steps = fit_iteration_time(nodes, local, np.array([0.04, 0.05, 0.1]))
    model = PerformanceModel(steps, from_noise(128.0, reference_epochs, 812.0), 60_000, 1, NodePrice(0.8))
    identity = Identity("digits", Fingerprint("cnn", "mnist", "sgd"), 1.2e6, 60_000)
    kept = (Machine.of(NODE),), (1, 2, 4, 8), BATCHES, model.document()
    return StoredModel("digits-1", identity, *kept, Provenance.LIVE, JOB.target, reference_epochs)


def test_curves_tells_the_table_and_writes_the_page(mlcd: Mlcd, ledger: Ledger, tmp_path: Path) -> None:
    elastic_run(ledger)
    answer = mlcd("curves", "last", "--html", tmp_path / "c.html")
    assert answer.code == 0
    assert "knee, chosen" in answer.out
    assert "Wrote " not in answer.out
    assert (tmp_path / "c.html").read_text().startswith("<!doctype html>")
    assert "Every configuration of the curve" in tables((tmp_path / "c.html").read_text())
    document = mlcd("curves", "digits-1", "-o", "json").document
    assert len(document["configurations"]) == len(SPACE)
    assert document["actual"]["seconds"] > 0
    assert document["mode"] == "partial"
    assert sum(row["knee"] for row in document["configurations"]) == 1


def test_curves_of_a_ranking_has_no_time(mlcd: Mlcd, ledger: Ledger) -> None:
    job = replace(JOB, ask=ScalingTask((1, 8), BATCHES, Mode.NONE))
    elastic_run(ledger, curve(relative=True), job=job)
    answer = mlcd("curves", "last")
    assert "x1.00" in answer.out
    assert "$" not in answer.out
    assert mlcd("curves", "last", "-o", "json").document["relative"] is True


def test_show_report_and_ledger_tell_of_an_elastic_run(mlcd: Mlcd, ledger: Ledger) -> None:
    elastic_run(ledger)
    assert "Target: accuracy 0.9712" in mlcd("show", "last").out
    assert mlcd("show", "last", "-o", "json").document["mode"] == "partial"
    assert mlcd("report", "last").code == 0
    assert "Every configuration of the curve" in tables(Path("digits-1.html").read_text())
    assert "noise 812" in mlcd("ledger", "last").out


def test_a_run_without_a_curve_is_one_line(mlcd: Mlcd, recorded_job: WriteJob) -> None:
    mlcd("train", recorded_job(), "--decide-only")
    assert "was not searched with mlcd scale" in mlcd("curves", "last").complaint
    assert "unknown run" in mlcd("curves", "nothing").complaint


def test_a_file_that_cannot_be_written_is_one_line(mlcd: Mlcd, ledger: Ledger, tmp_path: Path) -> None:
    elastic_run(ledger)
    said = mlcd("curves", "last", "--html", tmp_path / "none" / "x").complaint
    assert "cannot be written: No such file or directory; choose another path with --html" in said


def test_models_are_listed_shown_exported_and_forgotten(mlcd: Mlcd, home: Path, tmp_path: Path) -> None:
    assert "No models yet" in mlcd("models").out
    name = learned().name
    FileModelStore(home / "models").save(learned())
    listed = mlcd("models").out
    assert all(words in listed for words in (name, "cnn", "mnist", "sgd", "node", "accuracy >= 0.97"))
    (row,) = mlcd("models", "-o", "json").document["models"]
    assert row["name"] == name
    assert row["model"]["epochs"]["noise_scale"] == 812.0
    shown = mlcd("models", "show", name).out
    assert "STEP ON 8 NODES" in shown
    assert "epochs rise with the batch" in shown
    epochs = mlcd("models", "show", name, "-o", "json").document["epochs_by_batch"]
    assert [row["batch"] for row in epochs] == list(BATCHES)
    assert epochs[1]["epochs"] == pytest.approx(8.0)
    exported = mlcd("models", "export", name).out
    assert json.loads(exported)["run"] == "digits-1"
    assert mlcd("models", "export", name, tmp_path / "model.json").code == 0
    assert (tmp_path / "model.json").read_text() == exported
    assert "Deleted the model" in mlcd("models", "forget", name).out
    assert mlcd("models", "-o", "json").document == {"models": [], "unreadable": []}


def test_a_model_that_only_ranks_shows_epochs_as_factors(mlcd: Mlcd, home: Path) -> None:
    FileModelStore(home / "models").save(learned(None))
    shown = mlcd("models", "show", learned(None).name).out
    assert "x1 ±" in shown
    assert "not reached" in shown


def test_a_model_of_another_version_is_named_and_the_others_are_listed(mlcd: Mlcd, home: Path) -> None:
    FileModelStore(home / "models").save(learned())
    path = FileModelStore(home / "models").path(learned().name)
    (home / "models" / "old.json").write_text(json.dumps({**json.loads(path.read_text()), "format": 0}))
    answer = mlcd("models")
    assert answer.code == 0
    assert learned().name in answer.out
    assert "old.json: is of format 0" in answer.err
    assert "mlcd models forget old" in answer.err
    assert "is of format 0" in mlcd("models", "show", "old").complaint
    assert "is of format 0" in mlcd("models", "export", "old").complaint
    assert mlcd("models", "forget", "old", "-o", "json").document["forgotten"] == "old"
    assert mlcd("models").err == ""


def test_a_model_that_says_nothing_of_use_is_one_line(mlcd: Mlcd, home: Path) -> None:
    FileModelStore(home / "models").save(replace(learned(), model={"steps": {}}))
    assert "this MLCD cannot read its model" in mlcd("models", "show", learned().name).complaint
    assert "unknown stored model 'x'" in mlcd("models", "show", "x").complaint
    assert "unknown stored model 'x'" in mlcd("models", "forget", "x").complaint
    assert "No such command 'lst'" in mlcd("models", "lst").complaint
