"""The store of learned models: atomic writes, clear errors for unreadable models, and the nearest job is found."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcd.core.backend import Provenance
from mlcd.core.configuration import Offer
from mlcd.core.errors import UnknownName, UserError
from mlcd.core.job import Fingerprint, Hints, Job, Target
from mlcd.memory.earlier_runs import distance, nearest
from mlcd.memory.models import FileModelStore, Identity, Machine, StoredModel

CNN = Identity("digits", Fingerprint("cnn", "mnist", "sgd"), 1.2e6, 60_000)
NODE = Machine("node", 0.8, 1)
THEN = datetime(2026, 1, 2, tzinfo=UTC)


def stored(identity: Identity = CNN, run: str = "digits-1", **changes: Any) -> StoredModel:
    model = {"steps": [0.1, 0.2], "epochs": {"noise_scale": 812.0}}
    kept = StoredModel(
        run, identity, (NODE,), (1, 2), (64, 128), model, Provenance.LIVE, Target("accuracy", 0.97), 8.0, THEN
    )
    return replace(kept, **changes)


words = st.text(st.characters(codec="utf-8"), max_size=8)
sizes = st.none() | st.floats(1.0, 1e12)
identities = st.builds(Identity, words, st.builds(Fingerprint, words, words, words), sizes, sizes)


@given(identity=identities, run=words, epochs=st.none() | st.floats(0.1, 1e6))
def test_a_saved_model_is_loaded_whatever_its_jobs_name(
    tmp_path_factory: pytest.TempPathFactory, identity: Identity, run: str, epochs: float | None
) -> None:
    folder = tmp_path_factory.mktemp("models")
    kept = stored(identity, run, epochs=epochs)
    FileModelStore(folder).save(kept)
    assert [path.parent for path in folder.rglob("*")] == [folder]
    assert FileModelStore(folder).load(kept.name) == kept
    assert FileModelStore(folder).all() == ({kept.name: kept}, [])


def test_a_run_has_one_model_and_another_job_of_the_same_name_its_own(tmp_path: Path) -> None:
    FileModelStore(tmp_path).save(stored())
    FileModelStore(tmp_path).save(stored(epochs=9.0))
    FileModelStore(tmp_path).save(stored(replace(CNN, parameters=5e6)))
    models, _ = FileModelStore(tmp_path).all()
    assert sorted(model.epochs or 0 for model in models.values()) == [8.0, 9.0]


def test_a_model_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    FileModelStore(tmp_path).save(stored())
    path = FileModelStore(tmp_path).path(stored().name)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="JSON compliant"):
        FileModelStore(tmp_path).save(stored(model={"steps": math.nan}))
    assert path.read_bytes() == before
    path.unlink()
    path.mkdir()  # a folder in its place: the last step fails
    with pytest.raises(OSError, match=path.name):
        FileModelStore(tmp_path).save(stored())
    assert list(tmp_path.iterdir()) == [path]


BROKEN: Mapping[str, tuple[str, str]] = {
    "not JSON": ("{", "is not JSON"),
    "not a model": ("[1, 2]", "has no 'format'"),
    "another version": (json.dumps({"format": 99}), "is of format 99, and this MLCD reads format 1"),
    "a key is missing": (json.dumps({"format": 1, "run": "x"}), "'identity' is missing"),
    "nothing": ("", "is not JSON"),
}


@pytest.mark.parametrize(("body", "why"), BROKEN.values(), ids=BROKEN.keys())
def test_an_unreadable_file_is_named_with_what_to_do_and_the_others_are_listed(
    tmp_path: Path, body: str, why: str
) -> None:
    good = stored()
    FileModelStore(tmp_path).save(good)
    (tmp_path / "odd.json").write_text(body)
    with pytest.raises(UserError) as told:
        FileModelStore(tmp_path).load("odd")
    assert str(tmp_path / "odd.json") in str(told.value)
    assert why in str(told.value)
    assert str(told.value).endswith("mlcd models forget odd")
    assert "\n" not in str(told.value)
    models, broken = FileModelStore(tmp_path).all()
    assert list(models) == [good.name]
    assert [(each.name, each.because) for each in broken] == [("odd", str(told.value))]
    FileModelStore(tmp_path).forget("odd")
    assert FileModelStore(tmp_path).all() == ({good.name: good}, [])


def test_an_unknown_name_gets_a_suggestion(tmp_path: Path) -> None:
    FileModelStore(tmp_path).save(stored())
    (tmp_path.parent / "outside.json").write_text("{}")
    with pytest.raises(UnknownName, match="did you mean"):
        FileModelStore(tmp_path).load("digit-1")
    with pytest.raises(UnknownName):
        FileModelStore(tmp_path).forget("../outside")
    assert FileModelStore(tmp_path / "none").all() == ({}, [])


def test_a_model_that_its_maker_cannot_read_is_one_line() -> None:
    assert stored().learned(lambda model: model["epochs"]["noise_scale"]) == 812.0
    with pytest.raises(UserError, match=r"stored model 'digits-1-.*KeyError.*mlcd models forget digits-1-"):
        stored().learned(lambda model: model["flavour"])


def test_a_job_is_known_by_what_it_trains() -> None:
    job = Job("digits", 5e5, hints=Hints(parameters=1.2e6), dataset_samples=60_000, fingerprint=CNN.fingerprint)
    assert Identity.of(job) == CNN
    offer = Offer("p3.8xlarge", 12.24, 32, 244, accelerator="V100", accelerators=4, cloud="aws", region="us-east-1")
    assert Machine.of(offer) == Machine("p3.8xlarge", 12.24, 4, "aws", "us-east-1")


@given(identities, identities)
def test_distance_is_the_same_both_ways_and_nothing_is_nearer_than_itself(one: Identity, other: Identity) -> None:
    assert distance(one, other) == pytest.approx(distance(other, one))
    assert 0 <= distance(one, other) <= 5.5
    if all((one.fingerprint.architecture, one.fingerprint.data, one.fingerprint.optimizer, one.parameters)):
        assert distance(one, one) == 0 <= distance(one, other)


def relation(
    models: list[StoredModel], job: Identity, types: Sequence[str] = ()
) -> tuple[str, tuple[StoredModel, ...]]:
    found = nearest(models, job, types)
    assert found is not None
    return found.kinship.name, found.models


def test_the_same_job_comes_first_then_the_most_similar_then_all() -> None:
    same = stored(run="a-1")
    bigger = stored(replace(CNN, parameters=3e6), "b-1")
    elsewhere = stored(Identity("lm", Fingerprint("lstm", "wikitext", "adam"), 1e8), "c-1")
    assert relation([elsewhere, bigger, same], CNN) == ("SAME", (same,))
    assert relation([elsewhere, bigger], CNN) == ("SIMILAR", (bigger,))
    assert distance(bigger.identity, CNN) == pytest.approx(math.log10(3 / 1.2))
    assert relation([elsewhere], CNN) == ("AVERAGE", (elsewhere,))
    assert nearest([], CNN) is None


def test_jobs_that_do_not_say_what_they_train_are_the_same_by_name_only() -> None:
    assert relation([stored(Identity("digits"))], Identity("digits"))[0] == "SAME"
    assert relation([stored(Identity("digits"))], Identity("letters"))[0] == "AVERAGE"


def test_of_equally_near_models_that_of_the_same_machines_and_then_the_newest_is_taken() -> None:
    old, new = stored(run="a-1"), stored(run="a-2", saved_at=THEN + timedelta(days=1))
    other = stored(run="a-3", saved_at=THEN + timedelta(days=2), machines=(Machine("c5.large", 0.1, 1),))
    assert relation([old, new, other], CNN, ["node"]) == ("SAME", (new,))
    assert relation([old, new, other], CNN, ["c5.large"]) == ("SAME", (other,))
