"""The cloud's bill follows EC2's rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlcd_box.bill import ADDRESS_USD_PER_HOUR, EGRESS_USD_PER_GB, VOLUME_USD_PER_GB_HOUR, Item, bill
from mlcd_box.events import Event

PRICE = 3.6
"""Dollars an hour: a thousandth of a dollar a second."""


def event(at_s: float, kind: str, id: str = "i-1", **about: object) -> Event:
    return {"t": at_s, "kind": kind, "id": id, **about}


def started(at_s: float) -> list[Event]:
    machine = {"type": "m5.large", "zone": "us-east-1a", "market": "on-demand", "usd_per_hour": PRICE}
    return [
        event(at_s, "started", tags={"mlcd": "a-1"}, **machine),
        event(at_s, "volume", "vol-1", gb=730, machine="i-1"),
    ]


def machine_usd(items: list[Item]) -> float:
    return sum(item.usd for item in items if item.what.startswith("m5.large"))


def test_a_machine_is_billed_while_it_runs_and_not_while_it_boots() -> None:
    items = bill([*started(0), event(30, "running"), event(130, "terminated"), event(131, "volume_gone", "vol-1")], 1e6)
    assert machine_usd(items) == pytest.approx(0.1)
    assert all(item.is_over for item in items)
    assert {item.tags["mlcd"] for item in items} == {"a-1"}


def test_each_start_is_billed_for_at_least_a_minute() -> None:
    events = [*started(0), event(1, "running"), event(2, "stopped"), event(100, "running"), event(110, "terminated")]
    assert machine_usd(bill(events, 1e6)) == pytest.approx(0.12)


def test_a_machine_that_never_ran_costs_nothing_but_its_volume() -> None:
    items = bill([*started(0), event(5, "terminated"), event(5, "volume_gone", "vol-1")], 1e6)
    assert [item.what for item in items] == ["volume 730 GB"]


def test_a_volume_is_billed_while_its_machine_is_stopped() -> None:
    items = bill([*started(0), event(10, "running"), event(100, "stopped")], 3_600)
    (volume,) = (item for item in items if item.what.startswith("volume"))
    assert volume.usd == pytest.approx(730 * VOLUME_USD_PER_GB_HOUR)
    assert not volume.is_over
    assert machine_usd(items) == pytest.approx(0.09)


def test_addresses_are_billed_by_time_and_traffic_by_destination() -> None:
    sent = [{"t": 5, "kind": "sent", "region": "us-east-1", "to": to, "bytes": 1e9} for to in ("us-west-2", "internet")]
    items = bill([*started(0), event(0, "running"), event(3_600, "terminated"), *sent], 3_600)
    usd = {item.what: item.usd for item in items}
    assert usd["address"] == pytest.approx(ADDRESS_USD_PER_HOUR)
    assert usd["traffic to us-west-2"] == EGRESS_USD_PER_GB["region"]
    assert usd["traffic to internet"] == EGRESS_USD_PER_GB["internet"]


@given(st.floats(0, 1e5), st.floats(0, 1e5))
def test_a_running_machine_costs_the_same_as_one_that_ends_now(runs_s: float, now_s: float) -> None:
    until_s = max(runs_s, now_s)
    going_on = bill([*started(0), event(runs_s, "running")], until_s)
    ended = bill([*started(0), event(runs_s, "running"), event(until_s, "terminated")], until_s)
    assert machine_usd(going_on) == pytest.approx(machine_usd(ended))
