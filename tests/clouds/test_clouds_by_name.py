"""Places are found by the name before the colon, and imported only when they are used."""

from __future__ import annotations

import subprocess
import sys

import pytest

from mlcd.core.errors import UnknownName
from mlcd.core.job import Job
from mlcd.core.ledger import Ledger
from mlcd.core.place import cloud, places
from mlcd.core.runs.real_money import costs_real_money
from mlcd.core.runs.run import start


@pytest.mark.parametrize("on", ["simulatd", "simulated:x", "recorded", "moon:aws"])
def test_an_unknown_place_is_refused_in_one_line(on: str):
    with pytest.raises(UnknownName, match="backend"):
        cloud(on, Job("job", 1e6))


@pytest.fixture
def moon(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, float]]:
    """A place of another package; the fixture is the list of its calls."""
    calls = []

    def place(rest, job, elapsed_s, started_at):
        calls.append((rest, elapsed_s))
        return places()["simulated"]("", job, elapsed_s, started_at)

    monkeypatch.setitem(places().built_in, "moon", place)
    return calls


def test_a_place_of_another_package_works_like_a_built_in_one(moon):
    assert len(cloud("moon:dark-side", Job("job", 1e6), 7.0).space) > 0
    assert moon == [("dark-side", 7.0)]


def test_a_run_stores_the_name_of_an_external_place_as_written(moon):
    run = start(Job("job", 1e6, on="moon:dark-side"), Ledger(None))
    assert run.job.on == "moon:dark-side"
    assert moon == [("dark-side", 0.0)]


def test_the_error_about_an_unknown_place_lists_external_places(moon):
    with pytest.raises(UnknownName, match="did you mean 'moon'"):
        cloud("mooon", Job("job", 1e6))


def test_an_external_place_rents_only_after_a_confirmation():
    """MLCD cannot know what a place of another package bills."""
    assert costs_real_money("moon:dark-side")
    assert not any(
        costs_real_money(on) for on in ("simulated", "recorded:x", "local", "local:x", "ray:x", "functions:simulated")
    )
    assert all(costs_real_money(on) for on in ("skypilot", "skypilot:aws", "functions:aws_lambda"))


def test_a_simulated_cloud_imports_no_other_place():
    script = (
        "import sys; from mlcd.core.place import cloud; from mlcd.core.job import Job\n"
        "cloud('simulated', Job('job', 1e6))\n"
        "other = [name for name in sys.modules if name.startswith(('mlcd.clouds.ray', 'mlcd.clouds.skypilot'))]\n"
        "sys.exit(str(other) if other else 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
