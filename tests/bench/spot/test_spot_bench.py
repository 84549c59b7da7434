"""`mlcd bench spot` on a made-up folder: what is read, the JSON with its fields, the table."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mlcd.core.errors import UserError
from mlcd_bench.spot import POLICIES, Setting, contest, read_markets, starts, windows

Mlcd = Callable[..., Any]
FIELDS = {
    "set",
    "zones",
    "need",
    "start_tick",
    "deadline_h",
    "ratio",
    "changeover_min",
    "policy",
    "cost_usd",
    "optimum_usd",
    "on_demand_usd",
    "finished_h",
    "met",
    "timeline",
}
TICKS = 120


def write(path: Path, rows: list[list[Any]]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four machines together in two zones with a changing price, and single machines without a spot price."""
    up = [[4 if t // 9 % 3 else 2, 0 if t // 20 % 2 else 4] for t in range(TICKS)]
    rows = [[t, *up[t]] for t in range(TICKS)]
    rows[0][1:] = ["", 4]
    rows[50][1:] = ["", ""]
    write(tmp_path / "gang.csv", [["tick", "x-1a", "y-1b"], *rows])
    write(tmp_path / "gang_prices.csv", [["zone", "tick", "spot_usd_h"], ["x-1a", 0, 1.0], ["x-1a", 60, 1.5]])
    write(tmp_path / "alone.csv", [["tick", "x-1a_k80"], *[[t, 1] for t in range(TICKS)]])
    traces = [["trace", "zone", "requested", "tick_s"], ["gang", "x-1a", 4, 600], ["gang", "y-1b", 4, 600]]
    write(tmp_path / "traces.csv", [*traces, ["alone", "x-1a", 1, 600]])
    header = ["trace", "zone", "machine", "gpus", "spot_usd_h", "ondemand_usd_h"]
    prices = [["gang", "x-1a", "big", 1, "", 3.0], ["gang", "y-1b", "big", 1, 0.9, 3.2]]
    write(tmp_path / "prices.csv", [header, *prices, ["alone", "x-1a_k80", "old", 1, "", 0.9]])
    return tmp_path


def test_several_machines_make_two_markets_and_missing_prices_are_reported(folder: Path) -> None:
    markets, left_out = read_markets(folder)
    assert [(each.set, each.need) for each in markets] == [("gang", "any"), ("gang", "all")]
    assert left_out == ["alone, old: no spot price is known"]
    any_of, all_of = markets
    assert any_of.first_tick == 1
    assert len(any_of.up) == TICKS - 1
    assert any_of.up[:, 0].all()
    assert not all_of.up[0, 0]
    assert (any_of.up[49] == any_of.up[48]).all()  # an empty look repeats the one before
    assert any_of.spot_usd_h[[58, 59], 0].tolist() == [1.0, 1.5]
    assert all_of.spot_usd_h[0].tolist() == [4.0, 3.6]
    assert all_of.on_demand_usd_h == (12.0, 12.8)


def test_observations_may_begin_late_have_gaps_and_differ_by_zone(folder: Path) -> None:
    """Later weeks may be cut out of a longer file, and zones may be tried in turn."""
    ticks = [t for t in range(1_000, 1_000 + TICKS) if t != 1_050]
    rows = [[t, 4 if t % 2 else "", "" if t % 2 else 0] for t in ticks]
    write(folder / "gang.csv", [["tick", "x-1a", "y-1b"], *rows])
    write(folder / "gang_prices.csv", [["zone", "tick", "spot_usd_h"], ["x-1a", 7, 1.0], ["x-1a", 1_060, 1.5]])
    any_of = read_markets(folder)[0][0]
    assert any_of.first_tick == 1_001
    assert len(any_of.up) == TICKS - 1
    assert any_of.up.tolist() == [[True, False]] * (TICKS - 1)
    assert any_of.spot_usd_h[[0, 58, 59], 0].tolist() == [1.0, 1.0, 1.5]
    setting = Setting(window_h=10, stride_h=5, ratios=(2.0,), changeovers_min=(3,))
    assert [run.start_tick for run in contest(any_of, ["greedy"], setting)] == [1_001, 1_031]


def test_what_cannot_be_played_is_reported(folder: Path) -> None:
    write(folder / "more.csv", [["tick", "x-1a"], [0, 1]])
    write(folder / "egress.csv", [["from", "to", "usd"], ["a", "b", 1]])
    write(folder / "gang.csv", [["tick", "x-1a", "y-1b", "z-1c"], *[[t, 4, "", 1] for t in range(TICKS)]])
    with (folder / "traces.csv").open("a") as file:
        file.write("gone,x-1a,1,600\nfree,x-1a,1,600\n")
    write(folder / "free.csv", [["tick", "x-1a"], [0, 1]])
    markets, left_out = read_markets(folder)
    assert [each.zones for each in markets] == [("x-1a",)] * 2
    assert left_out == [
        "alone, old: no spot price is known",
        "free: prices.csv has no row for it",
        "gang, big: no observations of y-1b",
        "gang: prices.csv has no row for z-1c",
        "gone: there is no gone.csv",
        "more: traces.csv has no row for it",
    ]


def test_windows_leave_room_for_history_and_for_the_deadline(folder: Path) -> None:
    market = read_markets(folder)[0][0]
    assert starts(market, Setting(window_h=10, stride_h=5, history_h=2)) == [12, 42]
    assert starts(market, Setting(window_h=10, stride_h=5, history_h=100)) == []


def test_every_policy_meets_the_deadline_and_none_beats_the_optimum(folder: Path) -> None:
    setting = Setting(window_h=10, stride_h=4, history_h=2, ratios=(1.1, 2.0), changeovers_min=(3, 12))
    for market in read_markets(folder)[0]:
        runs = list(contest(market, POLICIES, setting))
        assert len(runs) == len(starts(market, setting)) * 2 * 2 * len(POLICIES)
        assert all(run.met and run.over_optimum >= 1 - 1e-9 for run in runs)


def test_the_number_of_processes_does_not_change_results(folder: Path) -> None:
    markets = read_markets(folder)[0]
    setting = Setting(window_h=10, stride_h=9, ratios=(1.1, 2.0), changeovers_min=(3, 12))
    one_by_one = [run for market in markets for run in contest(market, ["greedy", "pace"], setting)]
    shared = [run for runs in windows(markets, ["greedy", "pace"], setting, processes=2) for run in runs]
    assert shared == one_by_one


def test_a_job_that_cannot_meet_its_deadline_is_left_out_and_reported(mlcd: Mlcd, folder: Path) -> None:
    words = (
        "bench",
        "spot",
        folder,
        "--window-h",
        "10",
        "--policy",
        "on-demand",
        "--changeover",
        "3,40",
        "--set",
        "gang",
    )
    printed = mlcd(*words, "--ratio", "1,1.1", "-o", "json")
    assert {(run["ratio"], run["changeover_min"]) for run in json.loads(printed.out)["runs"]} == {
        (1.1, 3.0),
        (1.1, 40.0),
    }
    for changeover in ("3", "40"):
        assert f"left out: gang: a ratio of 1 leaves no time for a changeover of {changeover} min" in printed.err
    refused = mlcd(*words, "--ratio", "1")
    assert refused.code == 2
    assert "nothing to play" in refused.err


def test_an_unknown_zone_is_reported(mlcd: Mlcd, folder: Path) -> None:
    refused = mlcd("bench", "spot", folder, "--zones", "x-1a,y-1d")
    assert (refused.code, refused.err.strip()) == (2, "mlcd: unknown zone 'y-1d': did you mean 'y-1b'?")


def test_json_has_the_named_fields_and_its_timeline_adds_up_to_the_cost(mlcd: Mlcd, folder: Path) -> None:
    words = ("bench", "spot", folder, "--window-h", "10", "--stride-h", "9", "--ratio", "1.25", "--changeover", "3")
    printed = mlcd(*words, "--policy", "pace,on-demand", "-o", "json")
    runs = json.loads(printed.out)["runs"]
    assert {key for run in runs for key in run} == FIELDS
    market = {each.need: each for each in read_markets(folder)[0]}
    for run in runs:
        of, cost = market[run["need"]], 0.0
        for tick, zone, kind in run["timeline"]:
            if zone is not None:
                z = of.zones.index(zone)
                spot = of.spot_usd_h[run["start_tick"] - of.first_tick + tick, z]
                cost += float(spot if kind == "spot" else of.on_demand_usd_h[z]) / 6
        assert cost == pytest.approx(run["cost_usd"])


def test_the_table_shows_means_counts_and_losses(mlcd: Mlcd, folder: Path) -> None:
    printed = mlcd("bench", "spot", folder, "--window-h", "10", "--stride-h", "9", "--ratio", "2", "--changeover", "3")
    text = printed.out
    for word in ("gang", "cost-to-go", "greedy", "OVER", "SPREAD", "LOSSES", "uniform-progress-single"):
        assert word in text


def test_a_folder_without_traces_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"traces\.csv"):
        read_markets(tmp_path)


def test_a_zone_can_be_played_alone(folder: Path) -> None:
    market = read_markets(folder)[0][1].only(["y-1b"])
    assert market.zones == ("y-1b",)
    assert np.array_equal(market.up[:, 0], read_markets(folder)[0][1].up[:, 1])
