"""Trials on a real MLServer, started for each with its knobs, over HTTP and over gRPC."""

from __future__ import annotations

import pytest
from mlcd_fixtures.examples import at_night_except
from real_mlserver import mlserver, repository
from serving_contract import TIMING, clock, free_port, launch

from mlcd.clouds.serving.live import OpenInference
from mlcd.core.job import Job
from mlcd.core.measurement import Outcome
from mlcd.planners.serve.measure import ServingProfiler
from mlcd.planners.serve.model_facts import ModelFacts
from mlcd.planners.serve.nouns import Endpoint, Served, ServingTask

JOB = Job("sums", 1.0, ask=ServingTask(ModelFacts("sums"), shapes={"x.1": 4}))


@pytest.mark.parametrize("scheme", at_night_except(["http"], ["http", "grpc"]))
def test_mlserver_is_started_loaded_and_ended(tmp_path, scheme):
    if scheme == "grpc":
        pytest.importorskip("grpc", reason="pip install 'mlcd[serve]'")
    program = mlserver()
    ports = {"http": free_port(), "grpc": free_port()}
    folder = repository(tmp_path, ports["http"], ports["grpc"], free_port())
    command = f"MLSERVER_PARALLEL_WORKERS={{workers}} PATH={program.parent}:$PATH exec {program} start {folder}"
    endpoint = Endpoint(f"{scheme}://127.0.0.1:{ports[scheme]}", "sums", command)
    backend = OpenInference(tmp_path / "home", clock(), TIMING, endpoint=endpoint)
    trial = launch(lifetime_s=30.0, workers=0, concurrency=4)
    done = ServingProfiler(backend, tight=0.9).measure(JOB, trial)
    assert done.outcome is Outcome.OK, done
    assert done.rate > 0
    assert isinstance(done.evidence, Served)
    assert done.evidence.failures == 0
    assert 0.02 < (done.evidence.peak_gb or 0.0) < 10
    assert backend.leftovers() == set()
