"""Plugins of other packages are found by name, and imported only on first use."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points

import pytest

from mlcd.core.errors import UnknownName
from mlcd.core.job import Search
from mlcd.core.plugins import Plugins
from mlcd.planners.train.planner import METHODS, method
from mlcd_bench.baselines.train import CherryPick


def test_a_method_of_another_package_is_known_by_its_name():
    assert method(Search(method="cherrypick", seed=3)) == CherryPick(3)
    assert {"net-value", "heterbo", "cherrypick", "random"} <= set(METHODS)


def test_every_registered_method_can_be_imported():
    registered = entry_points(group="mlcd.methods")
    assert len(registered) >= 22
    for each in registered:
        assert callable(each.load()), each.name


def test_an_unregistered_name_is_reported_with_the_registered_ones():
    with pytest.raises(UnknownName, match="cherrypick"):
        method(Search(method="cherrypik"))


def test_a_built_in_one_comes_first_and_is_listed_once():
    plugins = Plugins("mlcd.methods", "train", {"random": lambda search: "ours"})
    assert plugins["random"](Search()) == "ours"
    assert list(plugins).count("random") == 1
    assert len(plugins) == len(set(plugins))
    assert "falcon" not in plugins, "a method of another kind"


def test_a_search_by_the_default_method_imports_no_research():
    script = (
        "import sys; from mlcd.planners.train.planner import method; from mlcd.core.job import Search\n"
        "method(Search())\n"
        "sys.exit('imported' if any(name.startswith('mlcd_bench') for name in sys.modules) else 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
