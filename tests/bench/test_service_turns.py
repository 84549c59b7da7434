"""What `benchmarks/service_fairness.py` reads from the changes of a queue: whether a wait was fair."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))  # studies are scripts, not a package

from service.turns import Change, Log, Slots, Turn

ONE = Slots((1,), at_once=2)
"""One worker of two slots: a member has one at the most, and runs that only compute have one together."""


def turn_of(run: str, *changes: tuple[float, str, str], slots: Slots = ONE, real: str = "") -> Turn:
    """The turn of a run in changes of (second, run, status); a run's first letter is its member."""
    log = [
        Change(at_s, name, name[0], name not in real.split(), 1 if status == "doing" else None, status)
        for at_s, name, status in changes
    ]
    (found,) = (turn for turn in Log(log, slots).turns() if turn.run == run)
    return found


SWEEP = [(0.0, "a1", "todo"), (0.0, "a2", "todo"), (0.0, "a3", "todo"), (1.0, "a1", "doing"), (4.0, "b1", "todo")]


def test_who_is_next_waits_for_the_rest_of_one_slots_time():
    found = turn_of("b1", *SWEEP, (11.0, "a1", "over"), (11.5, "b1", "doing"), (20.0, "b1", "over"))
    assert (found.waited_s, found.slot_s, found.behind) == (7.5, 10.0, 0)


def test_who_is_behind_the_whole_sweep_has_waited_for_more_than_one_slots_time():
    others = [(11.0, "a1", "over"), (11.0, "a2", "doing"), (21.0, "a2", "over"), (21.0, "a3", "doing")]
    found = turn_of("b1", *SWEEP, *others, (31.0, "a3", "over"), (31.5, "b1", "doing"), (40.0, "b1", "over"))
    assert (found.waited_s, found.slot_s, found.behind) == (27.5, 10.0, 2)


def test_nobody_waits_for_a_slot_that_is_free():
    found = turn_of("b1", *SWEEP, (9.0, "b1", "doing"), (10.0, "b1", "over"), real="b1")
    assert (found.waited_s, found.slot_s, found.behind) == (5.0, 0.0, 0)


def test_a_sweep_waits_for_the_others_turn_only_since_its_own_last_run_ended():
    others = [(11.0, "a1", "over"), (11.5, "b1", "doing"), (20.0, "b1", "over"), (20.5, "a2", "doing")]
    found = turn_of("a2", *SWEEP, *others, (30.0, "a2", "over"))
    assert (found.due_s, found.waited_s, found.slot_s, found.behind) == (11.0, 9.5, 8.5, 1)


def test_a_slot_that_a_run_may_not_have_is_no_slot_that_it_was_passed_over_for():
    others = [(5.0, "c1", "todo"), (5.0, "c1", "doing"), (6.0, "c1", "over"), (11.0, "a1", "over")]
    found = turn_of("b1", *SWEEP, *others, (11.5, "b1", "doing"), (20.0, "b1", "over"), real="c1")
    assert (found.slot_s, found.behind) == (10.0, 0)
