"""The place `market:DIR`: availability and prices of a recorded spot market, and errors in its folder."""

from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlcd_fixtures.crashes import CHILDREN, die_after, see_through
from mlcd_fixtures.examples import THOROUGH
from mlcd_fixtures.market_folders import market_folder

from mlcd.clouds.market_folder import load_market_folder
from mlcd.clouds.places.market import market_cloud, place
from mlcd.clouds.replayed_market import ReplayedMarket
from mlcd.core.backend import Launch, Purpose
from mlcd.core.clock import VirtualClock
from mlcd.core.configuration import Configuration
from mlcd.core.errors import Interrupted, NoCapacity, UserError
from mlcd.core.home import open_ledger
from mlcd.core.job import Goal, Job, Objective, Search
from mlcd.core.ledger import Account, Ledger
from mlcd.core.measurement import Ended, Outcome, Sample
from mlcd.core.place import Cloud
from mlcd.core.runs.run import resume, start
from mlcd.testing.backends import BackendContract

HOUR_S = 3_600.0
UP, DOWN = "1" * 6, "0" * 6
"""One hour each."""
ANY = {"resources": {"use_spot": "any"}}


def job(deadline_h: float = 20.0, on: str = "", **changes: Any) -> Job:
    goal = Goal(Objective.CHEAPEST, deadline_s=deadline_h * HOUR_S)
    return replace(Job("small", 1e6, goal, task=ANY, checkpoints=True, on=on), **changes)


def cloud(folder: Path, start_s: float = 0.0, elapsed_s: float = 0.0, requested: Job | None = None) -> Cloud:
    return market_cloud(load_market_folder(folder), requested or job(), start_s, elapsed_s)


def order(place: Cloud, zone: str, at_s: float = 0.0, nodes: int = 1) -> Launch:
    """A launch of the whole job on the spot market of a zone."""
    configuration = next(c for c in place.space.configurations if c.nodes == nodes)
    market = next(each for each in place.space.markets(configuration) if each.spot and each.zone == zone)
    return Launch("x-1", configuration, Purpose.RUN, 1e6, None, 0, market=market.at(at_s))


def saw_through(requested: Job) -> Account:
    run = start(requested, Ledger(None))
    run.search()
    run.launch()
    return run.book.account


class TestOnTraces(BackendContract):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder = load_market_folder(market_folder(tmp_path, [UP * 12], rates=[[None, 50.0]]))

    def backend(self, clock: VirtualClock) -> ReplayedMarket:
        backend = market_cloud(self.folder, self.job(), elapsed_s=clock.elapsed_s()).backend
        assert isinstance(backend, ReplayedMarket)
        return replace(backend, recorded=replace(backend.recorded, clock=clock))

    def job(self) -> Job:
        return Job("small", 1e6)

    def configuration(self) -> Configuration:
        return self.folder.recording.space.configurations[1]

    def failing(self) -> Configuration:
        return self.folder.recording.space.configurations[0]


def test_a_zone_that_is_down_refuses_and_one_that_goes_down_preempts(tmp_path):
    place = cloud(market_folder(tmp_path, [DOWN + UP + DOWN, UP * 3]))
    with pytest.raises(NoCapacity, match="spot in a"):
        place.backend.run(job(), order(place, "a"))
    place.clock.wait(1.5 * HOUR_S)
    *_, last, ended = place.backend.run(job(), order(place, "a"))
    assert ended == Ended(0.5 * HOUR_S, Outcome.PREEMPTED, "the spot machines were taken back")
    assert isinstance(last, Sample)
    assert last.saved == pytest.approx(50.0 * (0.5 * HOUR_S - 300))  # everything since the changeover
    assert place.clock.elapsed_s() == pytest.approx(2 * HOUR_S)


def test_after_the_end_of_a_trace_there_are_no_spot_machines(tmp_path):
    place = cloud(market_folder(tmp_path, [UP]))
    *_, ended = place.backend.run(job(), order(place, "a"))
    assert (ended.elapsed_s, ended.outcome) == (HOUR_S, Outcome.PREEMPTED)
    with pytest.raises(NoCapacity):
        place.backend.run(job(), order(place, "a"))


def test_a_run_may_begin_anywhere_in_the_trace_and_knows_the_spells_before(tmp_path):
    folder = market_folder(tmp_path, [UP + DOWN + UP], rules="history: 90m\nmarkets: [{trace: alone}]")
    place = cloud(folder, start_s=2 * HOUR_S)
    spot = next(each for each in place.space.choices[0].markets if each.spot)
    assert spot.before == ((-5_400.0, -4_200.0, True), (-3_600.0, -600.0, False))
    *_, ended = place.backend.run(job(), order(place, "a"))
    assert ended.elapsed_s == pytest.approx(HOUR_S)


def test_a_trace_whose_ticks_begin_later_is_replayed_from_its_first_one(tmp_path):
    """Later weeks, cut from a longer file."""
    folder = market_folder(tmp_path, [DOWN + UP + DOWN])
    (folder / "alone.csv").write_text("tick,a\n" + "".join(f"{1_000 + t},{6 <= t < 12:d}\n" for t in range(18)))
    (folder / "alone_prices.csv").write_text("zone,tick,spot_usd_h\na,0,1.0\na,1009,2.0\n")
    place = cloud(folder, start_s=HOUR_S)
    launched = order(place, "a")
    assert (launched.market.usd_per_hour, order(place, "a", at_s=1_800.0).market.usd_per_hour) == (0.5, 1.0)
    *_, ended = place.backend.run(job(), launched)
    assert (ended.elapsed_s, ended.outcome) == (HOUR_S, Outcome.PREEMPTED)


def test_a_run_may_begin_explicitly_at_0(tmp_path):
    folder = market_folder(tmp_path, [UP])
    assert place(f"{folder}@0h", job(), 0.0, None).space == cloud(folder).space


def test_prices_are_scaled_and_a_launch_has_the_price_of_its_start(tmp_path):
    """$4 on demand in the trace are $2 in the recording."""
    place = cloud(market_folder(tmp_path, [UP * 3], prices=[("a", 0, 1.0), ("a", 6, 1.5)]))
    spot, on_demand = place.space.choices[0].markets
    assert (on_demand.usd_per_hour, on_demand.spot) == (2.0, False)
    assert [spot.at(at_s).usd_per_hour for at_s in (0.0, 3_599.0, 3_600.0, 9_000.0)] == [0.5, 0.5, 0.75, 0.75]
    assert order(place, "a", at_s=3_600.0).bill_usd(HOUR_S) == 0.75


def test_each_node_count_may_have_its_own_market(tmp_path):
    place = cloud(market_folder(tmp_path, [UP, DOWN], rules="markets: [{nodes: 1, trace: alone, zones: [b]}]"))
    one, two = place.space.configurations
    assert {each.zone for each in place.space.markets(one)} == {"b"}
    assert place.space.markets(two) == ()


def test_traces_of_different_days_can_be_aligned(tmp_path):
    place = cloud(market_folder(tmp_path, [DOWN + UP + DOWN], rules="markets: [{trace: alone, from: 1h}]"))
    *_, ended = place.backend.run(job(), order(place, "a"))
    assert (ended.elapsed_s, ended.outcome) == (HOUR_S, Outcome.PREEMPTED)


def test_only_the_jobs_zones_are_searched(tmp_path):
    requested = job(search=Search(zones=("b",)))
    place = cloud(market_folder(tmp_path, [UP, UP]), requested=requested)
    assert {each.zone for each in place.space.choices[0].markets} == {"b"}


def test_on_demand_alone_is_the_recording_itself(tmp_path):
    folder = market_folder(tmp_path, [UP])
    place = cloud(folder, requested=replace(job(), task={}))
    assert all(not choice.markets for choice in place.space.choices)
    with pytest.raises(UserError, match="use_spot: true"):
        cloud(folder, requested=replace(job(), task={"resources": {"use_spot": True}}))


def test_a_job_is_searched_and_run_in_the_middle_of_a_trace(tmp_path):
    folder = market_folder(tmp_path, [DOWN + UP * 3 + DOWN * 9 + UP * 20, DOWN * 33])
    account = saw_through(job(on=f"market:{folder}@1h"))
    assert account.ended is not None
    assert account.ended.finished
    rentals = [each for each in account.history.rentals if each.came]
    assert rentals[0].market.zone == "a"
    assert rentals[0].taken_back
    assert rentals[0].ended_s == pytest.approx(3 * HOUR_S)
    assert account.history.elapsed_s <= 20 * HOUR_S


def test_a_type_without_a_market_runs_on_demand(tmp_path):
    folder = market_folder(
        tmp_path, [UP * 30], rates=[[50.0], [100.0]], rules="markets: [{types: type-0, trace: alone}]"
    )
    account = saw_through(job(3.8, on=f"market:{folder}"))
    assert account.decision is not None
    assert str(account.decision.configuration) == "1 x type-1"
    assert account.ended is not None
    assert account.ended.finished
    assert not account.history.rentals


spells = st.lists(st.tuples(st.sampled_from("01"), st.integers(1, 30)), min_size=1, max_size=12)
prices = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 119), st.floats(0.1, 6.0)), max_size=6)


@THOROUGH
@given(spells, spells, prices, st.floats(5.0, 20.0), st.none() | st.floats(8.0, 40.0), st.booleans())
def test_whatever_the_market_does_a_certified_job_keeps_its_limits(one, other, changes, deadline_h, budget, saves):
    """Even if spot machines become more expensive than on-demand ones."""
    up = ["".join(state * ticks for state, ticks in zone).ljust(120, "0")[:120] for zone in (one, other)]
    with TemporaryDirectory() as folder:
        market_folder(Path(folder), up, prices=changes)
        requested = job(deadline_h, on=f"market:{folder}", checkpoints=saves)
        requested = replace(requested, goal=replace(requested.goal, budget_usd=budget))
        run = start(requested, Ledger(None))
        if run.search().configuration is None:
            return
        run.launch()
    history, ended = run.book.account.history, run.book.account.ended
    assert ended is not None
    assert ended.finished
    assert history.elapsed_s <= deadline_h * HOUR_S
    assert budget is None or history.spent_usd <= budget


@pytest.mark.parametrize("stopped_after", range(1, 7))
def test_a_run_stopped_at_any_launch_resumes_at_the_same_tick(tmp_path, stopped_after):
    """A new process has a new clock, which starts at the time that the run had used."""
    folder = market_folder(tmp_path, [(UP + "0") * 10, ("0" + UP) * 10])
    requested, ledger = job(on=f"market:{folder}@20m"), Ledger(tmp_path / "ledger.db")
    undisturbed = saw_through(requested)
    run = start(requested, ledger)
    run.search()
    with pytest.raises(Interrupted):
        run.launch(stop=lambda: len(run.book.account.history.runs) >= stopped_after)
    resumed = resume(run.name, ledger)
    resumed.launch()
    assert resumed.book.account.history.rentals == undisturbed.history.rentals
    assert resumed.book.account.history.spent_usd == pytest.approx(undisturbed.history.spent_usd)


@pytest.mark.parametrize(
    ("file", "text", "complaint"),
    [
        ("market.yaml", None, "No such file"),
        ("market.yaml", "markets: []", "at least 1 item"),
        ("market.yaml", "markets: [{trace: moon}]", "trace 'moon': no such trace; there is alone"),
        ("market.yaml", "markets: [{trace: alone, zones: [z]}]", "zone 'z': alone has a"),
        ("market.yaml", "markets: [{trace: alone, types: 'p3.*'}]", "no rule fits"),
        ("market.yaml", "changeover: 1h\nmarkets: [{trace: alone}]", "less than half of a probe"),
        ("market.yaml", "changeover: soon\nmarkets: [{trace: alone}]", "expected a duration"),
        ("market.yaml", "markets: {", "not YAML"),
        ("traces.csv", None, "traces.csv: cannot be read"),
        ("traces.csv", "trace,zone\nalone,a", "missing column requested, tick_s"),
        ("prices.csv", "trace,zone,machine,gpus,spot_usd_h,ondemand_usd_h\nalone,a,m,1,x,4", "expected a number"),
        ("alone.csv", "tick,a\n2,1\n2,1", "alone.csv:3: tick '2': must be above the previous one, 2"),
        ("alone.csv", "tick,a\n0,1\n1760000000,1", "alone.csv:3: tick '1760000000': more than 1,000,000 ticks after"),
        ("alone.csv", "tick,a\n0,many", "a 'many': expected a number"),
        ("alone.csv", "tick,a", "no ticks"),
        ("points.csv", None, "no such file"),
    ],
)
def test_a_mistake_in_a_folder_is_one_line_with_its_file(tmp_path, file, text, complaint):
    folder = market_folder(tmp_path, [UP])
    (folder / file).unlink() if text is None else (folder / file).write_text(text)
    with pytest.raises(UserError, match=complaint) as caught:
        load_market_folder(folder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("on", "complaint"),
    [("market:", "backend"), ("market:nowhere", "nowhere"), ("market:x@soon", "where in the trace the run begins")],
)
def test_a_misspelt_place_is_one_line(on, complaint):
    with pytest.raises(UserError, match=complaint):
        start(job(on=on), Ledger(None))


def test_a_run_killed_after_any_entry_ends_as_if_it_had_not_been(tmp_path):
    folder = market_folder(tmp_path / "folder", [(UP + DOWN) * 10])
    requested = job(5.0, on=f"market:{folder}", work_samples=2e5)  # 32 entries, of waits and five launches

    def story(home: Path) -> tuple[object, float]:
        history = open_ledger(home).account("small-1").history
        return history.rentals, history.spent_usd

    see_through(requested, tmp_path / "whole")
    entries = len(open_ledger(tmp_path / "whole").lines("small-1"))
    for killed_after in range(1, entries, 4):
        home = tmp_path / str(killed_after)
        child = CHILDREN.Process(target=die_after, args=(requested, home, killed_after))
        child.start()
        child.join()
        assert child.exitcode == -signal.SIGKILL
        see_through(requested, home)
        assert story(home) == story(tmp_path / "whole")


def test_a_run_on_a_recorded_market_shows_where_it_was_rented(mlcd, tmp_path):
    folder, file = market_folder(tmp_path / "folder", [UP * 40]), tmp_path / "job.yaml"
    block = "mlcd: {work: 1M, goal: cheapest, deadline: 20h, checkpoints: true}"
    file.write_text(f"name: small\nresources: {{use_spot: any}}\nrun: python train.py\n{block}\n")
    done = mlcd("train", file, "--on", f"market:{folder}@1h", "-y")
    assert done.code == 0
    assert "expected, mostly on spot machines; certified" in " ".join(done.out.split())
    assert "On spot machines: 100 %  of the rented time, preempted 0 times" in done.out
    refused = mlcd("train", file, "--on", f"market:{tmp_path}", "-y")
    assert (refused.code, len(refused.err.splitlines())) == (2, 1)
    assert "market.yaml" in refused.err


def test_a_folder_with_only_traces_gets_simulated_speeds(mlcd, tmp_path):
    folder, file = market_folder(tmp_path / "folder", [UP * 60]), tmp_path / "job.yaml"
    (folder / "market.yaml").unlink()
    (folder / "prices.csv").write_text(
        "trace,zone,machine,gpus,spot_usd_h,ondemand_usd_h\nalone,a,g5.xlarge,1,1.0,4.0\nalone,a,abacus,1,1.0,4.0\n"
    )
    block = "mlcd: {work: 1M, goal: cheapest, deadline: 50h, checkpoints: true, flops_per_sample: 12.3G, batch: 64}"
    file.write_text(f"name: small\nresources: {{use_spot: any}}\nrun: python train.py\n{block}\n")
    done = mlcd("train", file, "--on", f"market:{folder}", "-y")
    assert done.code == 0
    assert "Decision (simulated): 1 x g5.xlarge" in done.out
    assert "spot in a" in done.out
    (folder / "prices.csv").write_text("trace,zone,machine,gpus,spot_usd_h,ondemand_usd_h\nalone,a,abacus,1,1.0,4.0\n")
    refused = mlcd("train", file, "--on", f"market:{folder}", "-y")
    assert (refused.code, len(refused.err.splitlines())) == (2, 1)
    assert "none of these is in it: abacus" in refused.err


def test_a_simulated_speed_is_not_called_recorded(mlcd, tmp_path):
    folder, file = market_folder(tmp_path / "folder", [UP * 60]), tmp_path / "job.yaml"
    (folder / "market.yaml").unlink()
    (folder / "prices.csv").write_text(
        "trace,zone,machine,gpus,spot_usd_h,ondemand_usd_h\nalone,a,g5.xlarge,1,1.0,4.0\n"
    )
    block = "mlcd: {work: 1M, goal: cheapest, deadline: 50h, checkpoints: true, flops_per_sample: 12.3G, batch: 1M}"
    file.write_text(f"name: small\nresources: {{use_spot: any}}\nrun: python train.py\n{block}\n")
    done = mlcd("train", file, "--on", f"market:{folder}", "-y")
    assert "out of memory (as on the simulated cloud)" in done.err


def test_waiting_is_one_line_an_hour_and_a_launch_names_its_market_once(mlcd, tmp_path):
    folder, file = market_folder(tmp_path / "folder", [UP * 2 + DOWN * 4 + UP * 40]), tmp_path / "job.yaml"
    block = "mlcd: {work: 1M, goal: cheapest, deadline: 30h, checkpoints: true}"
    file.write_text(f"name: small\nresources: {{use_spot: any}}\nrun: python train.py\n{block}\n")
    lines = mlcd("train", file, "--on", f"market:{folder}", "-y").err.splitlines()
    waits = [line for line in lines if line.startswith("  -  waiting: ")]
    assert 1 <= len(waits) <= 10
    launches = [line for line in lines if line.startswith("run ")]
    assert launches
    assert all(line.count("in a") == 1 for line in launches)
