from __future__ import annotations

from mlcd.clouds.recorded import Recorded
from mlcd.clouds.simulated import Simulated, Weather
from mlcd.core.clock import VirtualClock
from mlcd.core.configuration import Configuration, Offer
from mlcd.core.job import Hints, Job
from mlcd.core.measurement import Ended, Outcome
from mlcd.testing.backends import BackendContract
from mlcd.testing.clouds import small_recording

T4 = Offer("g4dn.xlarge", 0.526, 4, 16, "T4", 1, 8.1, 16, 5, "aws", minimum_billed_s=60)
RESNET = Job("resnet", 1e7, hints=Hints(parameters=25e6, flops_per_sample=12e9, global_batch=64))


class TestRecordedCloud(BackendContract):
    recording = small_recording([[None, 50.0, 80.0]], [1.0])

    def backend(self, clock):
        return Recorded(self.recording, clock, noise=0.03, seed=1)

    def job(self):
        return Job("small", 1e6)

    def configuration(self):
        return self.recording.space.configurations[1]

    def failing(self):
        return self.recording.space.configurations[0]


class TestSimulatedCloud(BackendContract):
    def backend(self, clock):
        return Simulated(clock, seed=1, weather=Weather(launch_failure=0.0))

    def job(self):
        return RESNET

    def configuration(self):
        return Configuration(T4, 2)

    def failing(self):
        tiny = Offer("tiny", 0.1, 2, 1)
        return Configuration(tiny, 1)


def ends(backend: Simulated, offer: Offer, launches: int = 200) -> list[Outcome]:
    """The outcomes of this many probes; OK if nothing ended them early."""
    from mlcd.core.backend import Launch, Purpose

    outcomes = []
    for ordinal in range(launches):
        order = Launch(f"x-{ordinal}", Configuration(offer, 2), Purpose.PROBE, 1e6, 600.0, ordinal)
        last = list(backend.run(RESNET, order))[-1]
        outcomes.append(last.outcome if isinstance(last, Ended) else Outcome.OK)
    return outcomes


def test_launches_fail_at_the_rate_of_the_weather():
    failed = ends(Simulated(VirtualClock(), 3, Weather(launch_failure=0.25)), T4).count(Outcome.LAUNCH_FAILED)
    assert 30 <= failed <= 70


def test_only_spot_machines_are_preempted():
    rough = Weather(launch_failure=0.0, preemptions_per_node_hour=2.0)
    spot = Offer(**{**{name: getattr(T4, name) for name in T4.__slots__}, "spot": True})
    assert Outcome.PREEMPTED not in ends(Simulated(VirtualClock(), 3, rough), T4)
    assert ends(Simulated(VirtualClock(), 3, rough), spot).count(Outcome.PREEMPTED) > 50


def test_a_seed_determines_the_cloud():
    here, there = Simulated(VirtualClock(), 1), Simulated(VirtualClock(), 2)
    assert here.efficiency(T4) == Simulated(VirtualClock(), 1).efficiency(T4)
    assert here.efficiency(T4) != there.efficiency(T4)


def test_a_recorded_probe_takes_the_recorded_time_and_half_of_it_if_it_fails():
    from mlcd.core.backend import Launch, Purpose

    recording = small_recording([[None, 50.0, 80.0, 90.0]], [1.0], probe_s=600)
    clock = VirtualClock()
    cloud = Recorded(recording, clock)
    for index, expected_s in ((3, 600 + 60 * 3 / 3), (0, 300)):
        before_s = clock.elapsed_s()
        order = Launch("x", recording.space.configurations[index], Purpose.PROBE, 1.0, None, 0)
        list(cloud.run(Job("x", 1.0), order))
        assert clock.elapsed_s() - before_s == expected_s
