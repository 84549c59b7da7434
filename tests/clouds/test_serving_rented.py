"""`mlcd serve --on skypilot`: one machine per trial, which runs the server and the load generator."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from mlcd_fixtures.skypilot import FakeSkyPilot, Scenario
from serving_contract import saved_model

from mlcd.clouds.places.serve.skypilot import rented_cloud
from mlcd.clouds.serving.event_lines import PIECE, TrialReader, lines_of
from mlcd.clouds.serving.remote_setup import requirements, trial_files, trial_task
from mlcd.clouds.serving.remote_trial import MODEL, TRIAL
from mlcd.clouds.serving.rented import RentedServers
from mlcd.clouds.skypilot.tagged_machines import TaggedMachines
from mlcd.core.backend import Launch, Purpose
from mlcd.core.clock import VirtualClock
from mlcd.core.configuration import Configuration, Offer
from mlcd.core.drive import search
from mlcd.core.errors import LedgerError, StillUp, UnknownName, UserError
from mlcd.core.home import home
from mlcd.core.job import Goal, Job, Objective, Search
from mlcd.core.ledger import Ledger, Settled, Started
from mlcd.core.measurement import Ended, Outcome, Sample
from mlcd.planners.serve.model_facts import ModelFacts
from mlcd.planners.serve.nouns import INSTANCE, KnobTable, ServerSettings, ServingTask, Window, knobs_of
from mlcd.planners.serve.planner import PLANNER
from mlcd.testing.backends import BackendContract

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
M5 = Offer("m5.large", 0.096, 2, 8, cloud="aws", region="us-east-1", minimum_billed_s=60)
TABLE = KnobTable({INSTANCE: ("m5.large", "c5.xlarge"), "threads": (1, 2, 4), "batch": (1, 4)})


class NoonClock(VirtualClock):
    """A clock whose time of day goes with it too."""

    def now(self):
        return NOON + timedelta(seconds=self.seconds)


@pytest.fixture
def model(tmp_path) -> Path:
    return saved_model(tmp_path)


@pytest.fixture
def job(model, monkeypatch, tmp_path) -> Job:
    monkeypatch.setenv("MLCD_HOME", str(tmp_path / "home"))
    service = ServingTask(ModelFacts("lstm"), path=str(model), table=TABLE, trial_s=30.0, shapes={"sequence": 4})
    goal = Goal(Objective.PER_DOLLAR, budget_usd=2.0)
    # A service has no work of its own; the fake cloud needs to know how long its program goes on.
    return Job("lstm", 4e5, goal, search=Search("grey-box", trials=4), on="skypilot:aws", ask=service)


def speed(task) -> float:
    """Requests per second of the fake server: more on larger machines."""
    return 900.0 if task["resources"]["instance_type"] == "c5.xlarge" else 400.0


def job_output(at_s: float, done: float) -> str:
    """As the program on the machine does."""
    window = Window(latencies_s=(0.004, 0.005, 0.006) if at_s else ())
    return "\n".join(lines_of(Sample(at_s, done, evidence=window)))


def fake_sky(clock, *scenarios: Scenario) -> FakeSkyPilot:
    return FakeSkyPilot(clock, speed, list(scenarios), job_output=job_output)


def order(lifetime_s: float | None = 1_110.0) -> Launch:
    setting = ServerSettings(((INSTANCE, "m5.large"), ("threads", 1), ("batch", 4)))
    return Launch("lstm-1-1", Configuration(M5, 1, setting), Purpose.PROBE, 4e5, lifetime_s, 0)


class TestRentedServers(BackendContract):
    @pytest.fixture(autouse=True)
    def _home(self, tmp_path_factory, job):
        self.folders, self._job, self.scenario = lambda: tmp_path_factory.mktemp("home"), job, Scenario()

    def backend(self, clock):
        clock.now = lambda: NOON + timedelta(seconds=clock.seconds)
        return RentedServers(fake_sky(clock, self.scenario), self.folders(), clock)

    def job(self):
        return self._job

    def configuration(self):
        return order().configuration

    def failing(self):
        self.scenario = Scenario(fails_after_s=30.0, error_output="MemoryError")
        return self.configuration()


class Searched:
    """A search on the fake cloud, as `mlcd serve` would do it."""

    def __init__(self, job: Job, *scenarios: Scenario) -> None:
        self.clock = NoonClock()
        self.sky = fake_sky(self.clock, *scenarios)
        self.place = rented_cloud(job, "aws", self.sky, self.clock, TaggedMachines(self.sky.ec2))
        self.ledger, self.job = Ledger(home() / "ledger.db"), job
        first = Started(job, self.place.space, job.on, self.place.provenance, "test")
        self.book = self.ledger.begin(job.name, self.clock, first)

    def search(self):
        guard, strategy = PLANNER.guard(self.job), PLANNER.search_strategy(self.job)
        return search(
            strategy, self.job, self.place.space, self.place.profiler, self.book, guard=guard, decide=PLANNER.decide
        )

    @property
    def settled(self) -> list[Settled]:
        return [line.entry for line in self.ledger.lines(self.book.run) if isinstance(line.entry, Settled)]

    def check(self) -> None:
        """Nothing is left, and the books hold the cloud's bill, within the budget."""
        assert self.sky.names() == set()
        billed = [cluster.bill_s for cluster in self.sky.clusters.values()]
        assert all(e.measurement.seconds >= s - 1 for e, s in zip(self.settled, billed, strict=True))
        assert self.book.account.open == ()
        assert self.book.account.history.spent_usd <= self.job.goal.most_usd


def test_types_of_machines_are_searched_with_the_settings_and_booting_is_paid_for(job):
    found = Searched(job)
    decision = found.search()
    assert decision.configuration is not None
    tried = {dict(knobs_of(entry.launch.configuration))[INSTANCE] for entry in found.settled}
    assert tried == {"m5.large", "c5.xlarge"}
    assert dict(knobs_of(decision.configuration))[INSTANCE] == decision.configuration.offer.instance_type == "c5.xlarge"
    assert all(entry.measurement.seconds > 200 for entry in found.settled), "machines take 200 s to come up here"
    found.check()


def test_a_server_that_ends_says_how(job, tmp_path):
    clock = NoonClock()
    end = Ended(12.0, Outcome.OUT_OF_MEMORY, "it needs more than 1 GB", "the last lines")
    sky = FakeSkyPilot(clock, speed, job_output=lambda at_s, done: "\n".join(lines_of(end)))
    *_, last = RentedServers(sky, tmp_path, clock).run(job, order())
    assert (last.outcome, last.detail, last.log) == (Outcome.OUT_OF_MEMORY, end.detail, end.log)
    assert sky.names() == set()


def test_a_machine_that_a_crash_left_is_found_torn_down_and_paid_for(job):
    found = Searched(job)

    def killed(*_):
        raise KeyboardInterrupt

    def now():  # it writes nothing more, and asks for nothing more
        found.ledger.close()
        found.sky.down = killed
        raise KeyboardInterrupt

    found.sky.after_launch = now
    with pytest.raises((KeyboardInterrupt, LedgerError, StillUp)):
        found.search()
    del found.sky.__dict__["down"]
    found.sky.after_launch = lambda: None
    found.clock.wait(400.0)
    found.ledger = Ledger(home() / "ledger.db")
    found.book = found.ledger.book("lstm-1", found.clock)
    assert len(found.sky.names()) == 1
    assert found.place.backend.leftovers() == {"lstm-1-1"}
    assert found.search().configuration is not None
    first = found.settled[0].measurement
    assert (first.outcome, first.seconds) == (Outcome.INTERRUPTED, pytest.approx(420.0))
    found.check()


def test_settings_that_a_type_is_too_small_for_are_not_tried(job):
    space = rented_cloud(job, "aws", fake_sky(NoonClock()), NoonClock()).space
    threads = {(c.offer.instance_type, dict(knobs_of(c))["threads"]) for c in space.configurations}
    assert threads == {("m5.large", 1), ("m5.large", 2), ("c5.xlarge", 1), ("c5.xlarge", 2), ("c5.xlarge", 4)}
    prices = {offer.instance_type: offer.usd_per_hour for offer in space.offers}
    assert prices["m5.large"] > M5.usd_per_hour, "with its disk and its address"
    assert prices["c5.xlarge"] > prices["m5.large"]


@pytest.mark.parametrize(
    "table, told",
    [
        (None, "name the instance types to try: --knobs FILE"),
        (KnobTable({"batch": (1, 2)}, base_usd=0.1), "name the instance types to try: --knobs FILE"),
        (KnobTable({INSTANCE: ("m5.lrge",)}), "m5.large"),
        (KnobTable({INSTANCE: ("m5.large",), "threads": (64,)}), "no instance type has that many cores and"),
        (KnobTable({INSTANCE: ("m5.large",), "colour": ("red",)}), "knob of the embedded server"),
        (KnobTable({INSTANCE: ("m5.large",), "threads": ("many",)}), "knob threads = many: expected a number"),
    ],
)
def test_a_mistake_is_told_in_a_line_before_anything_is_rented(job, table, told):
    job = replace(job, ask=replace(job.ask, table=table))
    with pytest.raises((UserError, UnknownName), match=told):
        rented_cloud(job, "aws", fake_sky(NoonClock()), NoonClock()).check(job)


def test_a_model_goes_with_the_files_of_its_weights(job, tmp_path):
    onnx = pytest.importorskip("onnx")
    large = tmp_path / "large.onnx"
    model = onnx.load(job.ask.path)
    onnx.save(model, large, save_as_external_data=True, location="large.weights", size_threshold=0)
    mounts = trial_task(replace(job, ask=replace(job.ask, path=str(large))))["file_mounts"]
    assert mounts == {f"{MODEL}/{name}": str(tmp_path / name) for name in ("large.onnx", "large.weights")}


# What is said on the machine


def test_events_come_through_as_they_were_however_long_they_are():
    many = tuple(round(0.001 + i / 1e6, 6) for i in range(3_000))
    sent = [
        Sample(1.0, 0.0, evidence=Window()),
        Sample(1.25, 3_000.0, evidence=Window(many, 2, "refused", 0.5)),
        Ended(1.5, Outcome.OUT_OF_MEMORY, "too large", "a\nb"),
    ]
    lines = [line for event in sent for line in lines_of(event)]
    assert max(map(len, lines)) <= PIECE + 20
    assert len(lines) > 3
    reader = TrialReader()
    heard = [sample for line in ["hello", *lines] for sample in reader.feed(f"{line}\n", 201.0)]
    assert heard == [replace(event, elapsed_s=event.elapsed_s + 200.0) for event in sent[:2]]
    assert reader.ended == replace(sent[2], elapsed_s=201.5)
    assert reader.reports == 3


@pytest.mark.live
def test_the_program_on_the_machine_serves_the_model_and_says_what_it_sees(job, model, tmp_path):
    pytest.importorskip("onnxruntime")
    shipped, home = tmp_path / "shipped", tmp_path / "machine"
    for path, text in trial_files(replace(job, ask=replace(job.ask, trial_s=8.0)), order()).items():
        (shipped / path).parent.mkdir(parents=True, exist_ok=True)
        (shipped / path).write_text(text, encoding="utf-8")
    (home / ".mlcd_model").mkdir(parents=True)
    (home / ".mlcd_model" / model.name).write_bytes(model.read_bytes())
    done = subprocess.run(
        [sys.executable, "-m", "mlcd.clouds.serving.remote_trial", str(shipped / TRIAL)],
        env={"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": str(shipped)},
        cwd=home,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    samples = TrialReader().feed(done.stdout, 10.0)
    assert samples[0].samples == 0
    assert samples[-1].samples > 10
    assert sum(len(sample.evidence.latencies_s) for sample in samples) == samples[-1].samples
    assert samples[-1].evidence.peak_gb > 0.01


def test_the_machine_gets_the_packages_that_serving_needs():
    needed = {each.partition(">")[0] for each in requirements()}
    assert {"onnxruntime", "aiohttp", "numpy", "pydantic"} <= needed
    assert not {"skypilot", "torch", "pytest"} & needed
