"""Calibrations are stored as measured, and errors name a damaged file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mlcd.core.errors import UserError
from mlcd.planners.functions import stored_calibrations
from mlcd.planners.functions.nouns import Calibration, Link
from mlcd.planners.functions.workload import Workload

LR = Workload("lr", "higgs", 1_000, 1.0, 0.001, 10)
KNOWN = Calibration(((128.0, 0.5),), {"s3": Link(0.08, 65.0, ((2, 0.3),))}, 60.0, (0.5, 0.1), 0.05, source="measured")


def test_a_stored_calibration_is_equal_after_it_is_read_again(tmp_path: Path):
    assert stored_calibrations.load(tmp_path, "functions", LR) is None
    stored_calibrations.save(tmp_path, "functions", LR, KNOWN)
    assert stored_calibrations.load(tmp_path, "functions", LR) == KNOWN


def test_a_storage_of_an_earlier_calibration_is_kept(tmp_path: Path):
    stored_calibrations.save(tmp_path, "functions", LR, KNOWN)
    stored_calibrations.save(tmp_path, "functions", LR, replace(KNOWN, links={"vm-ps": Link(0.001, 200.0)}))
    kept = stored_calibrations.load(tmp_path, "functions", LR)
    assert kept is not None
    assert set(kept.links) == {"s3", "vm-ps"}


def test_each_platform_and_model_has_its_own_calibration(tmp_path: Path):
    stored_calibrations.save(tmp_path, "functions", LR, KNOWN)
    assert stored_calibrations.load(tmp_path, "functions:aws_lambda", LR) is None
    assert stored_calibrations.load(tmp_path, "functions", replace(LR, model="svm")) is None


def test_the_error_about_a_damaged_calibration_names_the_file(tmp_path: Path):
    path = stored_calibrations.save(tmp_path, "functions", LR, KNOWN)
    path.write_text("{}")
    with pytest.raises(UserError, match="--fresh"):
        stored_calibrations.load(tmp_path, "functions", LR)
    stored_calibrations.save(tmp_path, "functions", LR, KNOWN)
    assert stored_calibrations.load(tmp_path, "functions", LR) == KNOWN, "measured again, it is replaced"
