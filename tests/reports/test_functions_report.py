"""Reports of a run on functions, in a terminal, as JSON and as a page, made from the ledger alone."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from io import StringIO

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from mlcd_fixtures.functions_runs import (
    TRAINED,
    TUNED,
    decided_lines,
    decision,
    infeasible,
    place,
    plan,
    points,
    stage_epochs,
    trained,
    training_lines,
    tuned,
    tuning_lines,
    written,
)
from mlcd_fixtures.reports import tables, view, words
from rich.console import Console

from mlcd.core.backend import Launch, Provenance, Purpose
from mlcd.core.decision import Decision
from mlcd.core.job import Goal, Objective
from mlcd.core.ledger import Account, Ended, Line, Reserved, Settled, Started, Stopped
from mlcd.core.measurement import Measurement, Outcome, Sample
from mlcd.core.units import format_duration, format_usd
from mlcd.planners.functions.nouns import (
    Allocation,
    Epoch,
    FunctionsEvidence,
    Planned,
    Stage,
    TrainEpochs,
    evidence_of,
    plan_of,
)
from mlcd.reports.document import run_document
from mlcd.reports.functions.document import plan_document
from mlcd.reports.functions.rows import (
    EpochRow,
    best_path,
    epoch_rows,
    fastest_first,
    grouped_rows,
    knee,
    shown_points,
    stage_rows,
)
from mlcd.reports.functions.tables import NO_PLAN, comparison_cells, fine_usd, gap_words, show_plan
from mlcd.reports.functions.words import METHODS, decision_sentence, short_s
from mlcd.reports.html import page
from mlcd.reports.launch_progress import ProgressMeter
from mlcd.reports.progress import ProgressLine
from mlcd.reports.run_tables import command
from mlcd.reports.story import Story
from mlcd.reports.terminal_run import Narrator, ledger_table, show_decision, show_outcome

BOTH = replace(TUNED, goal=Goal(Objective.FASTEST, 5.0, 60.0))
VOID = {"meta", "br"}


def then(lines: list[Line], *entries: object) -> list[Line]:
    return [*lines, *(replace(lines[-1], seq=lines[-1].seq + i, entry=e) for i, e in enumerate(entries, 1))]


def up_to(lines: list[Line], kind: type, nth: int) -> list[Line]:
    """As far as the nth entry of this kind that the run itself wrote."""
    at = [
        i for i, line in enumerate(lines) if isinstance(line.entry, kind) and line.entry.launch.purpose is Purpose.RUN
    ]
    return lines[: at[nth - 1] + 1]


def with_epochs(measurement: Measurement, epochs: tuple[Epoch, ...]) -> Measurement:
    return replace(measurement, evidence=replace(evidence_of(measurement), epochs=epochs))


def others_can() -> Decision:
    """No plan of the chosen method keeps the limits; other methods have one."""
    none = infeasible(BOTH)
    return replace(none, plan=replace(plan_of(none), plans=plan_of(decision(BOTH)).plans[1:]))


def half_a_stage() -> list[Line]:
    """Some trials of the first stage came to its end, one was a step behind, and then the limit was reached."""
    lines = up_to(tuning_lines(), Settled, 1)
    settled = lines[-1].entry
    assert isinstance(settled, Settled)
    cut = replace(
        with_epochs(settled.measurement, evidence_of(settled.measurement).epochs[:11]), outcome=Outcome.AT_THE_LIMIT
    )
    return [*lines[:-1], replace(lines[-1], entry=replace(settled, measurement=cut))]


def with_losses(lines: list[Line], loss: float) -> list[Line]:
    """The same run with this loss everywhere."""

    def changed(line: Line) -> Line:
        if not isinstance(line.entry, Settled):
            return line
        m = line.entry.measurement
        return replace(
            line,
            entry=replace(
                line.entry, measurement=with_epochs(m, tuple(replace(e, loss=loss) for e in evidence_of(m).epochs))
            ),
        )

    return [changed(line) for line in lines]


CASES: dict[str, Callable[[], list[Line]]] = {
    "nothing yet": lambda: tuning_lines()[:1],
    "calibrating": lambda: tuning_lines()[:4],
    "stopped": lambda: then(tuning_lines()[:5], Stopped("interrupted by the user")),
    "tuning is decided": lambda: decided_lines(TUNED, decision(TUNED)),
    "training is decided": lambda: decided_lines(TRAINED, decision(TRAINED)),
    "modelled": lambda: decided_lines(TUNED, decision(TUNED, modelled=True)),
    "the deadline cannot be kept": lambda: decided_lines(BOTH, infeasible(BOTH)),
    "the budget cannot be kept": lambda: decided_lines(BOTH, infeasible(BOTH, "the budget")),
    "both cannot be kept": lambda: decided_lines(BOTH, infeasible(BOTH, "the budget and the deadline together")),
    "others could": lambda: decided_lines(BOTH, others_can()),
    "no calibration": lambda: decided_lines(TUNED, Decision(None, "no calibration", binding="no probe could <start>")),
    "a stage is under way": lambda: up_to(tuning_lines(), Reserved, 3),
    "a stage broke": lambda: up_to(tuning_lines(), Settled, 2),
    "a stage was cut short": half_a_stage,
    "an epoch is under way": lambda: up_to(training_lines(), Reserved, 5),
    "an epoch broke": lambda: up_to(training_lines(), Settled, 7),
    "nothing came of it": lambda: then(up_to(tuning_lines(), Reserved, 1), Stopped("interrupted by the user")),
    "tuned": tuning_lines,
    "trained": training_lines,
    "trained shortly": lambda: training_lines(epochs=3),
    "never a number": lambda: with_losses(training_lines(), math.nan),
    "never a number, tuned": lambda: with_losses(tuning_lines(), math.inf),
    "failed": lambda: then(training_lines()[:-1], Ended(False, "out of <time>")),
    "no limit": lambda: decided_lines(*(lambda job: (job, decision(job)))(replace(TUNED, goal=Goal()))),
}


@pytest.fixture(params=CASES.values(), ids=CASES.keys())
def lines(request: pytest.FixtureRequest) -> list[Line]:
    found: list[Line] = request.param()
    return found


def account_of(lines: list[Line]) -> Account:
    return Account.replay((line.entry, line.elapsed_s) for line in lines)


def told(lines: list[Line], epochs: bool = True) -> str:
    """All that `mlcd show` prints of a run."""
    account, console = account_of(lines), Console(width=180, file=StringIO())
    narrate = Narrator(console, epochs=epochs)
    for line in lines:
        narrate(line)
    if account.decision is not None:
        show_decision(console, account, account.decision, account.job.goal)
    show_outcome(console, account)
    return console.file.getvalue()  # type: ignore[attr-defined]


def printed(*things: object) -> str:
    console = Console(width=180, file=StringIO())
    for thing in things:
        console.print(thing)
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_every_state_of_a_run_can_be_shown_in_a_terminal(lines):
    said = told(lines)
    assert lines[0].run in said
    assert printed(ledger_table(lines)).count("\n") >= len(lines)


def test_every_state_of_a_run_has_a_report_with_its_plans_and_what_was_run(lines):
    report = page(lines, points())
    functions, story = view(report)["document"], Story.of(lines)
    found = tables(report)
    for table in found.values():
        assert all(len(row) == len(table["columns"]) for row in table["rows"])
    assert ("The calibration" in found) == (
        story.decision is not None and plan_of(story.decision).calibration is not None
    )
    assert any(title.endswith("that was run") for title in found) == bool(functions["stages"] or functions["epochs"])
    assert ("The plan compared with other methods" in found) == bool(
        functions["decision"] and functions["decision"]["plans"]
    )


def test_every_state_of_a_run_is_plain_json_with_the_keys_of_its_kind(lines):
    document = json.loads(json.dumps(run_document(lines, points()), allow_nan=False))
    assert {
        "workload",
        "phase",
        "tuning",
        "limits",
        "prices",
        "probes",
        "decision",
        "stages",
        "epochs",
        "boundary",
    } <= (document.keys())
    assert document["phase"] == ("tuning" if document["tuning"] else "training")
    assert document["spent_usd"] == pytest.approx(account_of(lines).history.spent_usd)
    if document["decision"] is not None:
        assert {"words", "plans", "calibration", "binding", "relaxations"} <= document["decision"].keys()


def test_the_plan_is_shown_with_its_totals_and_compared_with_every_other_plan():
    said = told(decided_lines(TUNED, decision(TUNED)))
    chosen = plan(TUNED)
    for name in METHODS.values():
        assert name in said
    for each in chosen.stages:
        assert f"{each.allocation.memory_mb:,} MB" in said
    assert f"5 stages, {format_duration(chosen.seconds)}, {format_usd(chosen.usd)} of $50.00" in said
    assert f"the even split would take {format_duration(plan(TUNED, 'fixed').seconds)}" in said
    assert "certified" in said


def test_a_method_without_a_plan_is_shown_as_unable_to_keep_the_limit():
    made = decision(TUNED, missing=("fixed", "cirrus"))
    rows = {cells[0]: cells for cells in comparison_cells(plan_of(made).plans, plan_of(made).plans[0])}
    assert [name for name, cells in rows.items() if NO_PLAN in cells] == ["even split (fixed)", "Cirrus"]
    assert list(rows) == list(METHODS.values())
    assert "the even split cannot keep the limit" in decision_sentence(made, TUNED)


def test_only_the_chosen_plan_is_marked_and_others_are_compared_with_it():
    made = decision(TUNED)
    rows = comparison_cells(plan_of(made).plans, plan_of(made).plans[0])
    assert [cells[0] for cells in rows if cells[-1]] == ["exact"]
    greedy = next(cells for cells in rows if cells[0] == "greedy")
    assert greedy[2] == "+2.0 %"


@pytest.mark.parametrize(
    ("binding", "words"),
    [
        ("the deadline", "the deadline (1 m); the fastest possible takes 10 m, on 40 x 1769 MB, elasticache"),
        ("the budget", "the budget ($5.00); the cheapest possible costs $99.00, on 40 x 1769 MB, elasticache"),
        ("the budget and the deadline together", "($5.00 / 1 m); needs 10 m (40 x 1769 MB, elasticache), or $120.00"),
    ],
)
def test_a_limit_that_cannot_be_kept_is_named_with_what_would_be_enough(binding, words):
    lines = decided_lines(BOTH, infeasible(BOTH, binding))
    assert words in told(lines)
    assert words in run_document(lines)["decision"]["words"]
    assert view(page(lines))["answer"]["sentence"].startswith("Cannot be done")


def test_no_plan_is_marked_as_chosen_if_none_was_chosen():
    lines = decided_lines(BOTH, others_can())
    document = run_document(lines)
    assert [each["chosen"] for each in document["decision"]["plans"]] == [False] * 5
    assert "✔" not in told(lines)


def test_numbers_say_whether_they_were_measured_modelled_or_simulated():
    live = written(iter([*_entries(Provenance.LIVE)]))
    assert "Calibration: measured (8 probes), spread 3.0 %" in told(live)
    simulated = told(decided_lines(TUNED, decision(TUNED)))
    assert "Calibration: simulated, not measured" in simulated
    assert "Decision (simulated)" in simulated
    modelled = decided_lines(TUNED, decision(TUNED, modelled=True))
    assert "modelled from published figures, not measured" in told(modelled)
    assert "not certified: nothing was measured" in told(modelled)
    document = run_document(modelled)["decision"]
    assert document["calibration"]["numbers"] == "modelled"
    assert {each["numbers"] for each in document["plans"]} == {"modelled"}


def _entries(provenance: Provenance) -> list[object]:
    entries: list[object] = [line.entry for line in decided_lines(TUNED, decision(TUNED))]
    assert isinstance(entries[0], Started)
    return [replace(entries[0], provenance=provenance), *entries[1:]]


def test_stages_are_printed_as_they_are_measured():
    said = told(tuning_lines())
    assert "stage 1 of 5: 32 trials on 2 x 512 MB, s3" in said
    assert "best loss 0.65 of 32 trials (trial 0), 1 retry" in said
    assert "the storage went away" in said


def test_epochs_are_printed_as_they_are_measured_and_a_stored_run_shows_its_table():
    lines = training_lines()
    live, stored = told(lines), told(lines, epochs=False)
    assert "epoch 3: loss 0.67 (start 1.0 s, load 2.0 s" in live
    assert live.count("the epochs to come moved by 14 %") == 3  # once for each allocation
    assert "epoch 3: loss" not in stored
    assert "16-25  10 epochs on the same" in stored
    assert "Target: loss 0.4444 (<= 0.5: reached)" in stored


def test_a_failed_and_repeated_stage_is_one_row_with_all_its_costs():
    rows = stage_rows(account_of(tuning_lines()))
    assert [row.number for row in rows] == [1, 2, 3, 4, 5]
    assert [row.kept for row in rows] == [16, 8, 4, 2, 1]
    assert [len(row.launches) for row in rows] == [1, 2, 1, 1, 1]
    epochs = [epoch for launch in rows[1].launches for epoch in evidence_of(launch).epochs]
    assert rows[1].usd == pytest.approx(0.5 + sum(epoch.usd for epoch in epochs))
    assert sum(row.usd for row in rows) == pytest.approx(sum(m.usd for m in account_of(tuning_lines()).history.runs))


def test_a_launch_without_epochs_belongs_to_the_next_stage():
    broken = stage_rows(account_of(up_to(tuning_lines(), Settled, 2)))
    assert [(row.number, row.trials, row.kept) for row in broken] == [(1, 32, 16), (2, 0, None)]


def test_an_incomplete_stage_has_no_kept_trials():
    (row,) = stage_rows(account_of(half_a_stage()))
    assert (row.trials, row.kept) == (6, None)
    assert "6 of 32" in told(half_a_stage())


def test_the_path_of_a_tuning_run_is_that_of_its_best_trial():
    path = best_path(account_of(tuning_lines()))
    assert [row.epoch.number for row in path if row.epoch is not None] == list(range(1, 11))
    assert {row.epoch.trial for row in path if row.epoch is not None} == {0}


def test_of_a_repeated_epoch_the_last_result_counts():
    lines = up_to(training_lines(), Settled, 3)
    settled = lines[-1].entry
    assert isinstance(settled, Settled)
    order = replace(settled.launch, label="again", round=99)
    (epoch,) = evidence_of(settled.measurement).epochs
    again = with_epochs(settled.measurement, (replace(epoch, loss=0.123),))
    path = best_path(account_of(then(lines, Reserved(order, "again", 0.1, 9.0), Settled(order, again))))
    assert [row.epoch.loss for row in path if row.epoch is not None][-1] == 0.123
    assert len(path) == 3


@given(st.lists(st.integers(0, 2), min_size=1, max_size=80))
def test_grouping_rows_loses_no_epoch_and_shows_every_change(kinds):
    rows = []
    for number, kind in enumerate(kinds, 1):
        where = Allocation(1 + kind, 512, "s3")
        epoch = Epoch(0, number, 1.0, 0.1, 0.5)
        rows.append(
            EpochRow(
                where, epoch, Measurement(place(where), Outcome.OK, 1.0, 0.1, evidence=FunctionsEvidence((epoch,)))
            )
        )
    shown = grouped_rows(rows, most=5)
    assert [row for each in shown for row in each] == rows
    assert all(len({row.allocation for row in each}) == 1 for each in shown)
    assert shown[0] == (rows[0],)
    assert shown[-1] == (rows[-1],)


def test_a_run_of_many_epochs_fits_a_screen_and_adds_up():
    account = account_of(training_lines())
    assert len(grouped_rows(epoch_rows(account))) <= 15
    assert sum(row.usd for row in epoch_rows(account)) == pytest.approx(sum(m.usd for m in account.history.runs))


@given(st.lists(st.tuples(st.floats(0.01, 1e4), st.floats(1e-7, 1e3)), min_size=1, max_size=60))
@example([(1.0, 1.0)] * 13)
def test_a_shortened_boundary_keeps_both_ends_and_the_knee(pairs):
    found = [Planned(Stage(1, 1), Allocation(i + 1, 512, "s3"), *pair) for i, pair in enumerate(pairs)]
    shown, along = shown_points(found), fastest_first(found)
    assert len(shown) <= 12
    assert {along[0], along[-1]} <= set(shown) <= set(found)
    assert knee(found) is None or knee(found) in shown
    assert shown == fastest_first(shown)


def test_the_knee_is_where_the_boundary_bends():
    bent = [(1.0, 100.0), (1.1, 50.0), (2.0, 2.0), (50.0, 1.5), (100.0, 1.0)]
    found = [Planned(Stage(1, 1), Allocation(i + 1, 512, "s3"), *pair) for i, pair in enumerate(bent)]
    assert knee(found) == found[2]
    straight = [Planned(Stage(1, 1), Allocation(i, 512, "s3"), 10.0**i, 10.0**-i) for i in (1, 2, 3)]
    bend = knee(straight)
    assert bend is None or bend == straight[1]


def test_a_plan_is_shown_without_a_run():
    console = Console(width=180, file=StringIO())
    show_plan(console, TUNED, decision(TUNED), points())
    said = console.file.getvalue()  # type: ignore[attr-defined]
    for word in ("fastest", "knee", "cheapest", "even split (fixed)", "u(1,769 MB)", "elasticache", "2026-01-01"):
        assert word in said
    assert f"{plan(TUNED).stages[1].allocation.functions}" in said
    assert "2: 100 ms, 8: 400 ms" in said


def test_a_plan_is_plain_json_without_a_run():
    for made, feasible in ((decision(TUNED), True), (infeasible(TUNED), False)):
        document = json.loads(json.dumps(plan_document(TUNED, made, points()), allow_nan=False))
        assert document["feasible"] is feasible
        assert len(document["plans"]) == (6 if feasible else 0)
        assert len(document["boundary"]) == len(points())
        assert document["prices"]["date"] == "2026-01-01"
    assert document["relaxations"][0]["functions"] == 40


def test_the_best_trial_is_shown_with_its_hyperparameters():
    drawn = TUNED.ask.tuning.hyperparameters(0, 0)["learning_rate"]  # type: ignore[union-attr]
    best = f"trial 0, loss 0.45: learning_rate {drawn:.4g}"
    assert f"Best: {best}" in told(tuning_lines())
    assert f"Best: {best}" in words(page(tuning_lines()))
    assert "Best so far: trial 0" in told(up_to(tuning_lines(), Reserved, 3))
    assert run_document(tuning_lines())["best"]["hyperparameters"] == {"learning_rate": drawn}


@pytest.mark.parametrize("loss", [math.nan, math.inf])
def test_there_is_no_best_trial_if_all_have_diverged(loss: float):
    diverged = with_losses(tuning_lines(), loss)
    assert "Best" not in told(diverged)
    assert "best: trial" not in words(page(diverged)).lower()
    assert run_document(diverged)["best"] is None


def test_the_command_to_repeat_the_run_has_its_options():
    assert command(Story.of(tuning_lines())) == (
        "mlcd tune JOB.yaml --on functions --trials 32 --eta 2 --epochs-per-stage 2 --goal fastest --budget 50 "
        "--method exact --seed 0"
    )
    assert "mlcd train JOB.yaml --on functions --target-loss 0.5 --goal cheapest --deadline 7200s" in command(
        Story.of(training_lines())
    )


def test_the_progress_of_a_stage_counts_its_epochs():
    console = Console(width=200, file=StringIO())
    line = ProgressLine(console)
    where = Allocation(2, 512, "s3")
    order = Launch("x-1", place(where, 8), Purpose.RUN, 0.0, None, 0, work=TrainEpochs(2, 2, tuple(range(8))))
    for i, epoch in enumerate(stage_epochs(2, Stage(8, 2), range(8), where), 1):
        line(TUNED, order, Sample(10.0 * i, 0.0, evidence=epoch))
    said = console.file.getvalue()  # type: ignore[attr-defined]
    assert "stage 2 of 5: 8 trials on 2 x 512 MB, s3  8 of 16 epochs, best loss 0.525" in said
    assert "about 1 m 20 s left" in said
    assert "16 of 16" not in said  # that is told when it is settled


def test_the_progress_of_a_probe_says_that_it_calibrates():
    probe = Launch("x-1", place(Allocation(2, 512, "s3")), Purpose.PROBE, 1.0, 60.0, 0)
    assert ProgressMeter()(TUNED, probe, Sample(4.0, 0.0)).words == "2 x 512 MB, s3  calibrating, 4 s"


def test_small_numbers_keep_their_digits():
    assert fine_usd(0.0006014) == "$0.000601"
    assert fine_usd(2.5) == "$2.50"
    assert fine_usd(0.0) == "$0.00"
    assert short_s(0.00015) == "0.15 ms"
    assert short_s(9.99) == "10 s"
    assert gap_words(3.04, 1.0) == "+204 %"
    assert gap_words(1.0, 1.0) == "same"


def test_entries_of_a_made_up_run_are_those_of_its_plan():
    settled = [e for e in tuned(TUNED, plan(TUNED)) if isinstance(e, Settled)]
    assert len(settled) == 6
    assert len([e for e in trained(TRAINED) if isinstance(e, Settled)]) == 40
