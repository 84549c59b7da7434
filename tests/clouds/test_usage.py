"""Recording, reading and summarising what machines use while a job runs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from mlcd.cli.machine_usage import machine_usage
from mlcd.clouds.launches import Launches
from mlcd.clouds.local.gpus import Gpu
from mlcd.clouds.local.meters import Meter
from mlcd.clouds.usage import FILE, Line, Measured, MemoryPeak, Usage, usage_in, usage_of
from mlcd.clouds.usage_recorder import Recorder
from mlcd.core.backend import Launch, Purpose
from mlcd.core.configuration import Configuration, Offer

OFFER = Offer("cpu", 0.36, 0.5, 2.0, network_gbps=0.1, cloud="local")
GPU = Gpu("GPU-1", "NVIDIA H200", 81_920, 0, None)


@dataclass
class Machine:
    """A machine with two cores, of which `busy` are in use."""

    clock: Clock
    name: str = "node 0"
    cores: float = 2.0
    memory_gib: float = 4.0
    busy: float = 1.0
    memory: float = 1.0
    _read_s: float = 0.0

    def cpu_s(self) -> float:
        cpu_s, self._read_s = self.busy * (self.clock.now_s - self._read_s), self.clock.now_s
        return cpu_s

    def used_gib(self) -> float:
        return self.memory


@dataclass
class Clock:
    now_s: float = 0.0

    def __call__(self) -> float:
        return self.now_s


@dataclass
class Recorded:
    """A recorder with a clock that the test moves."""

    folder: Path
    gpus: list[Gpu] = field(default_factory=list)
    began_s: float = 0.0

    def __post_init__(self) -> None:
        self.clock = Clock(self.began_s)
        self.machine = Machine(self.clock, _read_s=self.began_s)
        self.recorder = Recorder(
            self.folder, [self.machine], self.gpus[:1], lambda: self.gpus, self.clock, lambda: 1e9 + self.clock.now_s
        )
        self.recorder._thread.start = lambda: None  # type: ignore[method-assign]
        self.recorder.__enter__()

    def wait(self, seconds: float) -> None:
        until_s = self.clock.now_s + seconds
        while self.clock.now_s < until_s:
            wait_s = min(self.recorder.tick(), until_s - self.clock.now_s)
            self.clock.now_s += max(wait_s, 1e-3)


@pytest.fixture
def recorded(tmp_path: Path) -> Recorded:
    return Recorded(tmp_path)


def known(folder: Path) -> Usage:
    usage = usage_in(folder)
    assert usage is not None
    return usage


def test_means_and_peaks_are_over_all_readings(recorded):
    recorded.wait(20)
    recorded.machine.busy, recorded.machine.memory = 0.0, 3.0
    recorded.wait(20)
    usage = known(recorded.folder)
    assert usage.busy_cores == pytest.approx(0.5, abs=0.05)
    assert usage.cpu_share == pytest.approx(0.25, abs=0.03)
    assert usage.memory_peak == MemoryPeak("node 0", 3.0, 4.0)
    assert usage.memory_peak.share == 0.75


def test_a_week_is_a_few_thousand_lines_and_no_peak_is_lost(recorded):
    recorded.wait(4 * 86_400)
    recorded.machine.memory = 3.9
    recorded.wait(30)
    recorded.machine.memory = 1.0
    recorded.wait(3 * 86_400)
    usage, size = known(recorded.folder), (recorded.folder / FILE).stat().st_size
    assert 3_000 < len(usage.lines) < 6_000
    assert size < 1_000_000
    assert usage.memory_peak is not None
    assert usage.memory_peak.used_gib == 3.9
    assert usage.busy_cores == pytest.approx(1.0, abs=0.01)
    few = usage.thinned(500)
    assert len(few.lines) <= 500
    assert (few.lines[-1].t, few.memory_peak) == (usage.lines[-1].t, usage.memory_peak)
    assert few.busy_cores == pytest.approx(usage.busy_cores)


def test_only_the_launchs_gpus_are_recorded(tmp_path):
    other = replace(GPU, uuid="GPU-2", used_mib=80_000, busy_percent=100.0)
    recorded = Recorded(tmp_path, [replace(GPU, used_mib=1_024, busy_percent=40.0), other])
    recorded.wait(10)
    recorded.gpus[0] = replace(GPU, used_mib=2_048, busy_percent=None)
    recorded.wait(10)
    usage = known(tmp_path)
    assert (usage.gpu_kinds, usage.gpu_percent, usage.gpu_peak_gib) == ("1 x NVIDIA H200", 40.0, 2.0)


def test_the_sizes_of_the_logs_are_recorded(recorded):
    recorded.wait(2)
    (recorded.folder / "0.log").write_text("good morning\n")
    recorded.wait(2)
    assert [line.logs for line in known(recorded.folder).lines] == [{}, {"0": 13}, {"0": 13}]


def test_a_process_that_rejoins_a_launch_continues_its_record(recorded):
    recorded.wait(10)
    again = Recorded(recorded.folder, began_s=60.0)
    again.wait(10)
    times = [line.t for line in known(recorded.folder).lines]
    assert times == sorted(times)
    assert times[-1] == pytest.approx(69, abs=1)


def test_a_launch_with_an_older_launchs_label_starts_a_new_record(tmp_path):
    launches, launch = Launches(tmp_path), Launch("job-1", Configuration(OFFER, 1), Purpose.PROBE, 1.0, None, 0)
    folder = launches.open(launch)
    Recorded(folder).wait(10)
    assert usage_in(launches.open(launch)) is None


@pytest.mark.parametrize("end", [b'{"t":2.0,"cpu":[0.', b"\xff\0\n", b"[]\n", b'{"t":2,"cpu":[1,2]}\n', b"3\n"])
def test_the_intact_lines_of_a_damaged_record_are_read(recorded, end):
    recorded.wait(5)
    whole = (recorded.folder / FILE).read_bytes()
    assert usage_of(whole + end) == usage_of(whole)
    assert usage_of(end + b"\n" + whole) is None


def usage(cpu: Iterable[float] = (), gpu: Iterable[float] = (), peak: float = 1.0) -> Usage:
    lines = tuple(
        Line(t, (cores,), (1.0,), (peak,), (busy,), (10.0,))
        for t, (cores, busy) in enumerate(zip(cpu, gpu, strict=True), 1)
    )
    return Usage(0.0, (Measured("node 0", 4.0, 2.0),), (Measured("H200", 80.0),), lines)


def test_a_wait_for_data_is_suggested_only_if_the_cpus_are_full():
    waits = usage([1.9] * 20, [38.0] * 20, peak=3.92)
    rest = "CPU 1.9 of 2 cores busy · memory at most 3.92 of 4 GiB (98%)"
    assert waits.sentence == f"GPU 38 % busy: waits for data? The CPUs are full · {rest}"
    for other in (usage([0.4] * 20, [38.0] * 20), usage([1.9] * 20, [90.0] * 20), usage([1.9] * 3, [38.0] * 3)):
        assert "waits" not in other.sentence
    assert Usage(0.0, (), (), waits.lines).sentence == ""


def test_cpu_time_is_summed_over_processes_and_ended_ones_are_not_subtracted(tmp_path):
    def process(number: int, ticks: int, kept_kib: int, cached_kib: int = 0, started: int = 7) -> None:
        (tmp_path / str(number)).mkdir(exist_ok=True)
        facts = ["S", *["0"] * 10, str(ticks), "0", *["0"] * 6, str(started), "0"]
        (tmp_path / str(number) / "stat").write_text(f"{number} (a) b) {' '.join(facts)}")
        rollup = f"Pss_Anon:  {kept_kib} kB\nPss_File:  {cached_kib} kB\nPss_Shmem:  0 kB\n"
        (tmp_path / str(number) / "smaps_rollup").write_text(rollup)

    process(1, 100, 1024**2, cached_kib=5 * 1024**2)
    process(2, 300, 1024**2)
    here = [1, 2, 99]
    meter = Meter("node 0", 1.0, 4.0, lambda: here, tmp_path)
    assert (meter.cpu_s(), meter.used_gib()) == (4.0, 2.0)
    here.remove(2)
    process(1, 150, 1024**2)
    assert (meter.cpu_s(), meter.used_gib()) == (0.5, 1.0)
    process(1, 20, 1024**2, started=8)  # another process with the same id
    assert (meter.cpu_s(), meter.used_gib()) == (0.2, 1.0)


def test_mlcd_show_prints_the_use(tmp_path, monkeypatch):
    monkeypatch.setenv("MLCD_HOME", str(tmp_path))
    assert machine_usage("job-1") is None
    launch = Launch("job-1-2", Configuration(OFFER, 1), Purpose.PROBE, 1.0, None, 0)
    recorded = Recorded(Launches(tmp_path / "launches").open(launch), [replace(GPU, used_mib=1_024, busy_percent=50.0)])
    recorded.wait(60)
    shown = machine_usage("job-1")
    assert shown is not None
    assert [column.label for column in shown.tables[0].columns][:4] == ["Launch", "CPU busy", "Most memory", "Of"]
    (row,) = shown.tables[0].rows
    assert row == ["job-1-2", pytest.approx(50, abs=2), 1.0, 4.0, "1 x NVIDIA H200", 50.0, 1.0, 80.0]


def test_a_launch_with_only_log_sizes_has_no_row(tmp_path, monkeypatch):
    monkeypatch.setenv("MLCD_HOME", str(tmp_path))
    folder = Launches(tmp_path / "launches").open(
        Launch("job-1-1", Configuration(OFFER, 1), Purpose.PROBE, 1.0, None, 0)
    )
    line = {"t": 1.0, "cpu": [], "memory": [], "peak": [], "gpu": [], "gpu_memory": [], "logs": {"0": 3}}
    (folder / FILE).write_text(f'{{"started_at":1,"machines":[],"gpus":[]}}\n{json.dumps(line)}\n')
    assert known(folder).lines[0].logs == {"0": 3}
    assert machine_usage("job-1") is None
