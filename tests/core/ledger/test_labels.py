"""Labels of runs are stored exactly, in any script, and with concurrent writers."""

from __future__ import annotations

import sqlite3
import unicodedata
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mlcd_fixtures.ledgers import begin

from mlcd.core.clock import VirtualClock
from mlcd.core.database import open_database
from mlcd.core.database.copy import copy
from mlcd.core.errors import UnknownName, UserError, WrongState
from mlcd.core.ledger import UNLABELLED, Labels, LabelUpdate, Ledger, Stopped
from mlcd.core.ledger.labels import LONGEST_NOTE, LONGEST_WORD, MOST_TAGS

SHARED = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
TEXTS = st.text(max_size=LONGEST_WORD + 20)
CHANGES = st.builds(
    dict,
    project=st.none() | TEXTS,
    add_tags=st.lists(TEXTS, max_size=5),
    remove_tags=st.lists(TEXTS, max_size=5),
    note=st.none() | st.text(max_size=300),
)


@pytest.fixture(params=["sqlite", "postgresql"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    where = request.getfixturevalue("postgres_url") if request.param == "postgresql" else tmp_path / "ledger.db"
    with closing(Ledger(where)) as found:
        yield found


@SHARED
@given(changes=st.lists(CHANGES, max_size=6))
def test_whatever_is_accepted_is_read_back_as_it_was_written(ledger: Ledger, changes: list[dict[str, object]]) -> None:
    run, expected, refusals = begin(ledger, "a"), UNLABELLED, list[str]()
    for each in changes:
        try:
            change = LabelUpdate.of(**each)  # type: ignore[arg-type]
            after = change.applied_to(expected)
        except UserError as error:
            refusals.append(str(error))
            continue
        expected = ledger.label(run, change, "ann")
        assert expected == after == ledger.labels().get(run, UNLABELLED) == ledger.labels_of(run)
        assert len(expected.tags) == len(set(expected.tags)) <= MOST_TAGS
        for word in (*expected.tags, *filter(None, [expected.project])):
            assert word == unicodedata.normalize("NFC", word)
            assert 0 < len(word) <= LONGEST_WORD
            assert not set(word) & set(" ,\n\t\0")
    assert all(line.isprintable() for line in refusals)  # one line, whatever was sent


NO_WORDS = ["", " ", "a b", "a,b", "-a", "a\nb", "a\0", "\u202ea", "\ud800", "x" * (LONGEST_WORD + 1)]


@pytest.mark.parametrize("bad", NO_WORDS)
def test_an_invalid_word_is_refused_in_one_line(bad: str) -> None:
    with pytest.raises(UserError, match="expected a word") as refused:
        LabelUpdate.of(add_tags=[bad])
    assert str(refused.value).isprintable()
    if bad:  # an empty project takes it away
        with pytest.raises(UserError, match="project"):
            LabelUpdate.of(project=bad)


def test_words_that_look_the_same_are_the_same() -> None:
    assert LabelUpdate.of(add_tags=["e\u0301"]) == LabelUpdate.of(add_tags=["é"])


def test_notes_are_plain_text_with_lines_and_without_control_characters() -> None:
    assert LabelUpdate.of(note=" <b>\r\n\tone\rtwo 👩\u200d🔬 ").note == "<b>\n\tone\ntwo 👩\u200d🔬"
    for bad in ("\x1b[31m", "a\0", "\u202eevil", "\ud800", "n" * (LONGEST_NOTE + 1)):
        with pytest.raises(UserError, match="note: "):
            LabelUpdate.of(note=bad)


def test_no_tag_is_lost_with_concurrent_writers(ledger: Ledger) -> None:
    runs = [begin(ledger, "a") for _ in range(3)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: ledger.label(runs[i % 3], LabelUpdate.of(add_tags=[f"t{i}"])), range(24)))
    assert [len(ledger.labels_of(run).tags) for run in runs] == [8, 8, 8]
    changed = ledger.labels_since(0)
    assert len({revision for revision, _, _ in changed}) == 3
    newest = max(revision for revision, _, _ in changed)
    assert newest == 24  # one for each change: who has seen one has seen all before it
    assert ledger.labels_since(newest) == []
    ledger.label(runs[0], LabelUpdate.of(note="new"))
    assert [(revision, run) for revision, run, _ in ledger.labels_since(newest)] == [(25, runs[0])]


def test_a_change_that_changes_nothing_is_none(ledger: Ledger) -> None:
    run = begin(ledger, "a")
    ledger.label(run, LabelUpdate.of(project="p", add_tags=["a"]))
    (before,) = ledger.labels_since(0)
    ledger.label(run, LabelUpdate.of(project="p", add_tags=["a"], remove_tags=["b"]))
    assert ledger.labels_since(0) == [before]
    assert ledger.label(run, LabelUpdate.of(project="", remove_tags=["a"])) == UNLABELLED


def test_too_many_tags_are_refused_and_none_of_them_is_kept(ledger: Ledger) -> None:
    run = begin(ledger, "a")
    with pytest.raises(UserError, match=f"at most {MOST_TAGS}"):
        ledger.label(run, LabelUpdate.of(add_tags=[str(i) for i in range(MOST_TAGS + 1)]))
    assert ledger.labels() == {}


def test_a_running_or_waiting_run_is_not_archived(ledger: Ledger) -> None:
    run, archive = begin(ledger, "a"), LabelUpdate.of(archived=True)
    with ledger.hold(run), pytest.raises(WrongState, match="is under way; archive it when it is over"):
        ledger.label(run, archive)
    waits = ledger.submit("a", "{}")
    with pytest.raises(WrongState, match="waits for a worker"):
        ledger.label(waits, archive)
    ledger.refuse(waits, "no")
    assert ledger.label(waits, archive).archived
    assert ledger.label(run, archive) == Labels(archived=True)
    with pytest.raises(UnknownName):
        ledger.label("b-1", archive)


def test_labels_are_no_entries_and_say_who_and_when(tmp_path: Path) -> None:
    with closing(Ledger(tmp_path / "ledger.db")) as ledger:
        run = begin(ledger, "a")
        ledger.append(run, VirtualClock(), [Stopped("enough")])
        before = ledger.since(0)
        ledger.label(run, LabelUpdate.of(project="p"), "ann")
        assert ledger.since(0) == before
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as db:
        ((who, when),) = db.execute("SELECT changed_by, changed_at FROM labels").fetchall()
    assert who == "ann"
    assert when.endswith("+00:00")


def test_labels_move_with_their_runs(tmp_path: Path, postgres_url: str) -> None:
    with closing(Ledger(tmp_path / "ledger.db")) as ledger:
        run = begin(ledger, "a")
        ledger.label(run, LabelUpdate.of(project="ü", add_tags=["a", "b"], note="two\nlines"))
        with closing(open_database(postgres_url)) as new:
            copy(ledger.database, new)
        with closing(Ledger(postgres_url)) as moved:
            assert moved.labels() == ledger.labels()
            moved.label(run, LabelUpdate.of(add_tags=["c"]))
            assert [revision for revision, _, _ in moved.labels_since(1)] == [2]


def test_a_ledger_of_the_format_before_gets_labels(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with closing(Ledger(path)) as ledger:
        run = begin(ledger, "a")
    with closing(sqlite3.connect(path)) as db:
        db.executescript("DROP TABLE labels; UPDATE alembic_version SET version_num = '0007'; PRAGMA user_version = 7")
    with closing(Ledger(path)) as ledger:
        assert ledger.label(run, LabelUpdate.of(project="p")).project == "p"
