"""Trials on the embedded server: real processes, real requests."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from serving_contract import TIMING, ServingContract, clock, events_of, launch, saved_model

from mlcd.clouds.serving.live import Embedded
from mlcd.core.errors import UserError
from mlcd.core.job import Job
from mlcd.core.measurement import Ended, Outcome
from mlcd.planners.serve.measure import ServingProfiler
from mlcd.planners.serve.model_facts import ModelFacts
from mlcd.planners.serve.nouns import Arrivals, ServingTask

pytestmark = pytest.mark.live

ENDLESS = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from serving_contract import TIMING, clock, launch
from mlcd.clouds.serving.live import Embedded
from mlcd.core.job import Job
from mlcd.planners.serve.model_facts import ModelFacts
from mlcd.planners.serve.nouns import ServingTask
service = ServingTask(ModelFacts("m"), path=sys.argv[3], shapes={"sequence": 16})
for event in Embedded(Path(sys.argv[2]), clock(), TIMING).run(Job("m", 1.0, ask=service), launch()):
    print(launch().label, flush=True)
"""
"""A trial that nobody ends."""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved_model(tmp_path_factory.mktemp("model"))


class TestEmbedded(ServingContract):
    @pytest.fixture
    def backend(self, tmp_path, model):
        return Embedded(tmp_path, clock(), TIMING)

    @pytest.fixture
    def job(self, model):
        return Job("lstm", 1.0, ask=ServingTask(ModelFacts("lstm"), path=str(model), shapes={"sequence": 16}))

    def test_a_profiler_measures_it(self, backend, job):
        done = ServingProfiler(backend, tight=None).measure(job, launch(lifetime_s=6.0, threads=1, batch=2))
        assert done.outcome is Outcome.OK, done
        assert done.rate > 0
        assert done.evidence.requests > 10
        assert done.evidence.failures == 0
        assert done.startup_s > 0

    def test_open_arrivals_are_a_little_more_than_what_is_asked_for(self, backend, job):
        open_ = replace(job, ask=replace(job.ask, arrivals=Arrivals.OPEN, min_rate=100.0))
        last = events_of(backend, open_, launch(), most=16)[-1]
        assert last.samples == pytest.approx(1.5 * 115, rel=0.3)  # some five standard errors of so many arrivals
        with pytest.raises(UserError, match="open arrivals need a rate"):
            events_of(backend, replace(job, ask=replace(job.ask, arrivals=Arrivals.OPEN)), launch())

    @pytest.mark.parametrize(
        ("knobs", "outcome", "told"),
        [
            ({"memory_gb": 0.02}, Outcome.OUT_OF_MEMORY, "out of memory: the server held"),
            ({"precision": "int8"}, Outcome.FAILED, "has no operator that int8 speeds up"),
        ],
    )
    def test_a_server_that_cannot_run_so_is_an_event_with_its_words(self, tmp_path, backend, knobs, outcome, told):
        import onnx

        relu = onnx.helper.make_node("Relu", ["x"], ["y"])
        ports = [[onnx.helper.make_tensor_value_info(name, 1, ["batch", 3])] for name in "xy"]
        opset = [onnx.helper.make_opsetid("", 17)]
        path = tmp_path / "relu.onnx"
        graph = onnx.helper.make_graph([relu], "graph", *ports)
        onnx.save(onnx.helper.make_model(graph, opset_imports=opset, ir_version=8), str(path))
        job = Job("relu", 1.0, ask=ServingTask(ModelFacts("relu"), path=str(path)))
        (ended,) = events_of(backend, job, launch(**knobs))
        assert isinstance(ended, Ended)
        assert ended.outcome is outcome
        assert told in ended.detail
        assert "\n" not in ended.detail
        assert backend.leftovers() == set()

    @pytest.mark.parametrize(
        ("knobs", "told"),
        [
            ({"thread": 1}, "did you mean 'threads'"),
            ({"threads": 10_000}, "knob threads = 10000: there are"),
            ({"precision": "fp8"}, "unknown precision"),
        ],
    )
    def test_a_knob_that_cannot_be_is_a_mistake(self, backend, job, knobs, told):
        with pytest.raises(UserError, match=told):
            events_of(backend, job, launch(**knobs))

    def test_axes_that_nobody_has_sized_are_a_mistake(self, backend, job):
        unsized = replace(job, ask=replace(job.ask, shapes={}))
        with pytest.raises(UserError, match="--shape sequence=128"):
            events_of(backend, unsized, launch())

    def test_a_killed_mlcd_leaves_no_server(self, tmp_path, model):
        """The watchdog ends what MLCD cannot end any more."""
        command = [sys.executable, "-c", ENDLESS, str(Path(__file__).parent), str(tmp_path), str(model)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as mlcd:
            assert mlcd.stdout is not None
            label = mlcd.stdout.readline().strip()
            backend = Embedded(tmp_path, clock(), TIMING)
            assert backend.leftovers() == {label}
            mlcd.kill()
        watched = clock()
        while backend.leftovers() and watched.elapsed_s() < 20:
            watched.wait(0.05)
        assert backend.leftovers() == set()
        assert (backend.reclaim(label) or 0.0) > 0
