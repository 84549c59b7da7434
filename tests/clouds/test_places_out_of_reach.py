"""While a place that rents is unavailable, nothing is booked and the run stops. For SkyPilot: test_skypilot.py."""

from __future__ import annotations

import socket
from datetime import UTC, datetime
from importlib.util import find_spec
from types import SimpleNamespace

import pytest

from mlcd.clouds.functions.lithops_functions import LithopsFunctions
from mlcd.clouds.node_types import load_ray_types
from mlcd.clouds.ray.backend import Ray
from mlcd.clouds.serving.live import OpenInference
from mlcd.core.clock import WallClock
from mlcd.core.configuration import Choice, ProbeTime, Space
from mlcd.core.job import Job
from mlcd.core.place import Cloud
from mlcd.planners.functions.measure import FunctionsProfiler
from mlcd.planners.functions.nouns import FunctionsTask
from mlcd.planners.functions.space import calibration_space
from mlcd.planners.functions.workload import StorageRate, Tariff, Workload
from mlcd.planners.functions.workloads import sizes_mb
from mlcd.planners.profilers.training import TrainingProfiler
from mlcd.planners.serve.measure import ServingProfiler
from mlcd.planners.serve.model_facts import ModelFacts
from mlcd.planners.serve.nouns import Endpoint, KnobTable, ServingTask
from mlcd.planners.serve.space import serving_space
from mlcd.testing.backends import OutageContract

TYPES = "types: {small: {cpus: 2, memory: 4GB, link: 1Gbit, usd_per_hour: $3}}"


def clock() -> WallClock:
    return WallClock(datetime.now(UTC))


@pytest.fixture
def nobody():
    """An address of this machine where nothing listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed: pip install 'mlcd[ray]'")
class TestRay(OutageContract):
    @pytest.fixture
    def cloud(self, tmp_path, monkeypatch, nobody):
        monkeypatch.setenv("RAY_ADDRESS", nobody)
        (tmp_path / "types.yaml").write_text(TYPES)
        types = load_ray_types(tmp_path / "types.yaml")
        backend = Ray(types, tmp_path, clock())
        space = Space((Choice(types.offers[0], (1, 2, 3)),), ProbeTime(600, 60))
        return Cloud(space, backend, TrainingProfiler(backend), backend.clock)


class TestEndpoint(OutageContract):
    @pytest.fixture
    def cloud(self, tmp_path, nobody):
        backend = OpenInference(tmp_path, clock(), endpoint=Endpoint(f"http://{nobody}", "model"))
        space = serving_space(KnobTable({"concurrency": (1, 2, 4)}), ProbeTime(20.0, 0.0))
        return Cloud(space, backend, ServingProfiler(backend), backend.clock)

    def job(self):
        return Job("outage", 1.0, ask=ServingTask(ModelFacts("model")))


class NoBucket(LithopsFunctions):
    """A platform that answers, but whose bucket does not."""

    def _caller(self, stack, folder, allocation, at_once):
        def away(*_):
            raise ConnectionError("no route to host\nand more")

        bucket = SimpleNamespace(backend="s3", bucket="b", list_keys=away, put_object=away)
        return SimpleNamespace(bucket=bucket, close=lambda: None)


@pytest.mark.skipif(find_spec("lithops") is None, reason="lithops is missing: pip install 'mlcd[lithops]'")
@pytest.mark.parametrize("kind", [LithopsFunctions, NoBucket], ids=["no account", "no bucket"])
class TestFunctions(OutageContract):
    @pytest.fixture
    def cloud(self, kind, tmp_path, monkeypatch):
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.delenv("LITHOPS_CONFIG_FILE", raising=False)
        backend = kind(tmp_path, clock(), {"s3": "s3://nowhere"}, "aws_lambda")
        space = calibration_space(self.serverless())
        return Cloud(space, backend, FunctionsProfiler(backend), backend.clock)

    def serverless(self):
        data_mb, model_mb = sizes_mb("lr", "higgs", 1_000)
        workload = Workload("lr", "higgs", 1_000, data_mb, model_mb, 50, 0.1)
        return FunctionsTask(workload, tariff=Tariff(1e-5, 1e-7, (StorageRate("s3"),)), storages=("s3",))

    def job(self):
        return Job("outage", 1_000.0, ask=self.serverless())
