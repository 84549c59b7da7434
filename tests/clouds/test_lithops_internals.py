"""Undocumented parts of Lithops are used in one file only, with the one version for which it was written."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import mlcd
from mlcd.clouds.functions.lithops_internals import WRITTEN_AGAINST

ROOT = Path(mlcd.__file__).parent
INTERNALS = re.compile(
    r"lithops\.(?:constants|storage|worker|utils|job|monitor|invokers|future)\b"
    r"|\.(?:compute_handler|job_monitor|invoker|task_processes|_call_status|_clean_at_exit)\b"
)


def test_the_extra_requires_the_version_whose_internals_are_used():
    extras = tomllib.loads((ROOT.parent / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (requirement,) = (Requirement(each) for each in extras["lithops"] if each.startswith("lithops"))
    major, minor = map(int, WRITTEN_AGAINST.split("."))
    for patch in (0, 1, 20):
        assert requirement.specifier.contains(f"{major}.{minor}.{patch}")
    assert not requirement.specifier.contains(f"{major}.{minor - 1}.9")
    assert not requirement.specifier.contains(f"{major}.{minor + 1}.0")


def test_the_installed_version_is_that_one():
    try:
        installed = version("lithops")
    except PackageNotFoundError:
        pytest.skip("pip install 'mlcd[lithops]'")
    assert installed.startswith(f"{WRITTEN_AGAINST}."), "compare lithops_internals.py with the new version"


def test_no_other_file_uses_internals_of_lithops():
    users = {p.relative_to(ROOT).as_posix() for p in ROOT.rglob("*.py") if INTERNALS.search(p.read_text("utf-8"))}
    assert {Path(name).name for name in users} == {"lithops_internals.py"}, users
