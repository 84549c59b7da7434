"""Models that are sent: read elsewhere, kept once under the hash of their bytes, up to a quota."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

import pytest
from hostile_inputs import onnx_model
from hypothesis import given
from hypothesis import strategies as st
from stage import API, PLENTY, staged

from mlcd.core.database.files import UploadedModels
from mlcd.core.errors import UserError
from mlcd.service.web.routes.uploads import cleaned
from mlcd.service.web.state import Limits as Most
from mlcd.service.web.untrusted_input import PASSES, Limits, in_child_process, passes, passes_limits
from mlcd.service.workers.submissions import from_json

pytest.importorskip("onnxruntime", reason="pip install 'mlcd[serve]'")
BYTES = {"content-type": "application/octet-stream"}


@pytest.fixture
def stage(tmp_path):
    with staged(tmp_path / "home") as stage:
        yield stage


def send(stage, body, name="model.onnx", who="ron"):
    return stage.ask("POST", f"{API}/uploads?name={name}", who, raw=body, headers=BYTES)


def kept(stage):
    return sorted(each.name for each in (stage.state.settings.home / "uploads").iterdir())


def test_an_upload_is_kept_under_the_hash_of_its_bytes_and_told_what_it_is_made_of(stage):
    body = onnx_model()
    digest = hashlib.sha256(body).hexdigest()
    told = send(stage, body)
    assert told.status == 201, told.body
    found = told.json()
    assert (found["upload"], found["name"], found["size"]) == (digest, "model.onnx", len(body))
    assert [(each["kind"], each["count"]) for each in found["operators"]] == [("Add", 1)]
    assert found["operators"][0]["share"] == pytest.approx(1.0)
    assert kept(stage) == [f"{digest}.onnx"]
    assert (stage.state.settings.home / "uploads" / f"{digest}.onnx").read_bytes() == body
    entry = stage.state.audit.entries(1)[0]
    assert (entry.who, entry.action, entry.about, entry.outcome) == ("ron", "upload", digest, "ok")


def test_the_same_bytes_are_kept_once_whoever_sends_them(stage):
    first, began = send(stage, onnx_model()).json(), datetime.now(UTC)
    sent = UploadedModels(stage.state.database, stage.state.settings.home)
    assert sent.sent_before(began) == [first["upload"]]
    assert send(stage, onnx_model(), "other.onnx", "rita").json() == first
    assert len(kept(stage)) == 1
    assert sent.sent_before(began) == [], "sent again, it is not old: nobody deletes it before it is used"


def test_a_model_is_served_from_its_upload_and_its_name_is_shown(stage):
    digest = send(stage, onnx_model(), "My%20Model.onnx").json()["upload"]
    body = {"kind": "serve", "upload": digest, "options": {"latency_p95": "30ms", "budget": "2"}}
    answer = stage.ask("POST", f"{API}/runs", "ron", body)
    assert answer.status == 202, answer.body
    job, _ = from_json(stage.state.ledger.submission(answer.json()["run"]).request)
    assert job.name == job.ask.model.name == "My Model"
    assert job.ask.path == f"upload:{digest}", "no path of this machine"
    assert job.ask.model.profiles[0].operators[0].name == "Add"
    assert job.ask.caps[0].at_most_s == pytest.approx(0.03)


def test_what_was_refused_leaves_no_file(stage):
    assert send(stage, b"no model").status == 422
    assert kept(stage) == []
    assert stage.ask("POST", f"{API}/uploads", "ron", raw=[b"\x08"], headers=BYTES, cut=True).status == 400
    assert kept(stage) == []


def test_a_member_keeps_no_more_than_the_quota(tmp_path):
    limits = Most(1, 0, 256, *(PLENTY.per_minute, PLENTY.submissions_per_minute, PLENTY.sign_ins_per_minute))
    with staged(tmp_path / "home", limits=limits) as stage:
        refused = send(stage, onnx_model())
        assert refused.status == 413
        assert "ron has uploaded 0 MB of models" in refused.error
        assert kept(stage) == []


def test_a_model_that_cannot_be_run_is_kept_with_the_reason(stage):
    told = send(stage, onnx_model("unknown operator"))
    assert told.status == 201, told.body
    assert "ONNX Runtime cannot run it" in told.json()["facts"]["note"]
    assert told.json()["operators"] == [{"kind": "<script>", "count": 1, "share": None}]
    assert not [each for each in kept(stage) if each.startswith(("incoming", "passes"))]


def test_a_model_whose_size_only_running_tells_gets_no_more_memory_than_its_file_is_worth(stage):
    told = send(stage, onnx_model("a computed size"))
    assert told.status == 201, told.body
    assert "Failed to allocate memory for requested buffer of size 3600000000" in told.json()["facts"]["note"]


@given(st.integers(0, 1 << 40))
def test_memory_for_passes_grows_with_the_file_up_to_a_limit(file_bytes):
    memory_mb = passes_limits(file_bytes).memory_mb
    assert 1_024 <= memory_mb <= min(4_096, 1_024 + 16 * (file_bytes >> 20))


def test_a_service_at_whose_places_nothing_is_served_takes_no_model(tmp_path):
    with staged(tmp_path / "home", places=("simulated", "recorded", "skypilot")) as stage:
        refused = send(stage, onnx_model())
        assert (refused.status, refused.error) == (
            422,
            "this service takes no models: none is served here (--places has no 'local')",
        )
        assert not (stage.state.settings.home / "uploads").exists()


def test_a_model_that_never_ends_is_ended(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(onnx_model("endless loop"))
    with pytest.raises(UserError, match="crashes the reader"):
        in_child_process(
            "model.onnx", Limits(PASSES.memory_mb, 1, 30.0, 1), passes, str(path), "m.onnx", {}, str(tmp_path)
        )


@given(st.text(max_size=300))
def test_a_name_to_show_is_plain_short_and_no_path(name):
    shown = cleaned(name)
    assert 0 < len(shown) <= 80
    assert shown.isascii()
    assert shown.isprintable()
    assert not set(shown) & set("/\\<>&\"'")
    assert not shown.startswith(".")
    assert cleaned(shown) == shown
