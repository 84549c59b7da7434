"""Probes that used nearly all of their memory: how that affects the choice, and what the answer says."""

from __future__ import annotations

import pytest

from mlcd.core.configuration import Choice, Configuration, Offer, ProbeTime, Space
from mlcd.core.guarantee import decide
from mlcd.core.history import History
from mlcd.core.job import Goal, Job, Objective
from mlcd.core.ledger.entries import Decided, from_json, to_json
from mlcd.core.measurement import Measurement, Outcome
from mlcd.reports.words import decision_words, result_words

OFFER = Offer("node", 1.0, 4, 16)
SPACE = Space((Choice(OFFER, (1, 2, 4)),), ProbeTime(60.0, 6.0), startup_limit_s=60.0)
ONE, TWO, FOUR = (Configuration(OFFER, nodes) for nodes in (1, 2, 4))
GOAL = Goal(Objective.FASTEST, deadline_s=1e6)


def probed(where: Configuration, rate: float, memory: float | None) -> Measurement:
    return Measurement(where, Outcome.OK, 60.0, 0.1, rate, memory=memory)


def chosen(*probes: Measurement, goal: Goal = GOAL):
    return decide(Job("job", 1e6, goal), SPACE, History(probes), "because")


@pytest.mark.parametrize("memory, best", [(0.94, FOUR), (0.97, TWO), (None, FOUR)])
def test_of_two_about_as_good_the_one_with_room_is_chosen(memory: float | None, best: Configuration) -> None:
    decision = chosen(probed(FOUR, 100.0, memory), probed(TWO, 97.0, 0.6))
    assert decision.configuration == best
    assert decision.certified


def test_a_clearly_better_one_with_nearly_full_memory_is_chosen_with_a_warning() -> None:
    decision = chosen(probed(FOUR, 100.0, 0.971), probed(TWO, 80.0, 0.6))
    assert decision.configuration == FOUR
    words = ", but a probe used 97 % of its memory, so the job may run out of memory"
    assert decision_words(decision, GOAL).endswith(f"certified within 11 d 14 h with 99 % confidence{words}")
    free = chosen(probed(FOUR, 100.0, 0.971), goal=Goal())
    assert decision_words(free, Goal()).endswith(f"no limit was set{words}")


def test_where_all_are_close_to_the_wall_the_best_is_chosen() -> None:
    assert chosen(probed(FOUR, 100.0, 0.99), probed(TWO, 99.0, 0.97)).configuration == FOUR


def test_no_warning_if_memory_is_spare_or_unknown() -> None:
    for memory in (0.5, None):
        assert "memory" not in decision_words(chosen(probed(FOUR, 100.0, memory)), GOAL)


def test_the_worst_of_several_probes_counts() -> None:
    again = chosen(probed(FOUR, 100.0, 0.99), probed(FOUR, 101.0, 0.7))
    assert again.memory == 0.99
    (pooled,) = History((probed(FOUR, 100.0, 0.7), probed(FOUR, 101.0, 0.99))).good
    assert pooled.memory == 0.99


def test_a_ledger_keeps_it() -> None:
    decision = chosen(probed(FOUR, 100.0, 0.97))
    assert from_json(to_json(Decided(decision))).decision == decision


def test_a_probe_that_came_close_is_shown_so() -> None:
    assert result_words(probed(FOUR, 100.0, 0.97)).endswith(", 97 % of its memory")
    assert "memory" not in result_words(probed(FOUR, 100.0, 0.9))
