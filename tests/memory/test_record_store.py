"""A record store, in files or a database, returns what was saved; a team's workers share what they learn."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from importlib.resources import files

import pytest
from sqlalchemy import delete, insert

from mlcd.core.backend import Provenance
from mlcd.core.database import open_database
from mlcd.core.database.schema import models
from mlcd.core.errors import UnknownName
from mlcd.core.ledger import Ledger
from mlcd.core.runs.run import start
from mlcd.memory.models import DatabaseModelStore, FileModelStore, Identity, Machine, StoredModel, learned_models
from mlcd.planners.form.jobs import job_from_text

KEPT = StoredModel(
    "digits-1", Identity("digits"), (Machine("a", 1.0, 1),), (1, 2), (32,), {"x": [1.0]}, Provenance.LIVE
)


@pytest.fixture(scope="module")
def team(running_postgres):
    with closing(Ledger(running_postgres.new_database())) as ledger:
        yield ledger


@pytest.fixture(params=["files", "postgresql"])
def shelf(request, tmp_path):
    """An empty one of each kind."""
    if request.param == "files":
        return FileModelStore(tmp_path / "models")
    return emptied(request.getfixturevalue("team"))


def emptied(ledger):
    with ledger.database.write() as connection:
        connection.execute(delete(models))
    return DatabaseModelStore(ledger.database)


def test_saved_records_are_listed_once_newest_first_until_they_are_deleted(shelf):
    assert shelf.all() == ({}, [])
    later = replace(KEPT, run="digits-2", saved_at=KEPT.saved_at + timedelta(days=1))
    shelf.save(later)
    shelf.save(KEPT)
    shelf.save(replace(KEPT, nodes=(4,)))
    stored, broken = shelf.all()
    assert list(stored.items()) == [(later.name, later), (KEPT.name, replace(KEPT, nodes=(4,)))]
    assert broken == []
    shelf.forget(later.name)
    assert list(shelf.all()[0]) == [KEPT.name]
    for unknown in (later.name, "../x", "\0"):
        with pytest.raises(UnknownName, match="unknown stored model"):
            shelf.forget(unknown)


def test_a_number_that_json_does_not_have_is_refused_and_nothing_is_kept(shelf):
    with pytest.raises(ValueError, match="JSON"):
        shelf.save(replace(KEPT, model={"x": float("nan")}))
    assert shelf.all() == ({}, [])


def test_an_unreadable_row_is_reported_and_can_be_deleted():
    with closing(open_database(None)) as database:
        shelf = DatabaseModelStore(database)
        shelf.save(KEPT)
        with database.write() as connection:
            connection.execute(insert(models).values(name="odd", saved_at="", body='{"format": 99}'))
        stored, (broken,) = shelf.all()
        assert list(stored) == [KEPT.name]
        assert broken.because.endswith("delete it with: mlcd models forget odd")
        shelf.forget("odd")
        assert shelf.all()[1] == []


def test_one_persons_models_are_files_and_a_teams_are_in_its_database(tmp_path, team):
    with closing(open_database(None)) as own:
        assert learned_models(own, tmp_path) == FileModelStore(tmp_path)
    assert learned_models(team.database, tmp_path) == DatabaseModelStore(team.database)


def test_a_run_starts_from_what_a_run_on_another_machine_learned(tmp_path, monkeypatch, team):
    job = job_from_text(
        "scale", files("mlcd.service.web").joinpath("examples/scale.yaml").read_text(encoding="utf-8"), {}
    )
    emptied(team)
    monkeypatch.setenv("MLCD_HOME", str(tmp_path / "here"))
    first = start(job, team)
    first.search()
    first.launch()
    monkeypatch.setenv("MLCD_HOME", str(tmp_path / "there"))
    second = start(job, team)
    assert second.book.account.started.lesson == f"the same job, run {first.name}"
    (learned,) = learned_models(team.database).all()[0].values()
    assert learned.run == first.name
    assert not (tmp_path / "here" / "models").exists()
