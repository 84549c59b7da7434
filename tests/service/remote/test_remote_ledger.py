"""A server's runs read as those of the ledger they came from, and are watched without loss over broken connections."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mlcd.core.errors import UnknownName, UserError, WrongState
from mlcd.core.ledger import Ended, Ledger
from mlcd.core.runs.run import start
from mlcd.planners.jobfile.read import load_job
from mlcd.service.remote.ledger import BACKOFF_S, Event, RemoteLedger, events, watch
from mlcd.service.remote.requests import Submission, logs, request_action, submit
from mlcd.service.remote.server import Server, ServerLost

EXAMPLE = Path(__file__).parents[3] / "examples" / "resnet50.yaml"
TOKEN = "mlcd_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG"


@pytest.fixture(scope="module")
def books() -> Iterator[Ledger]:
    """A ledger with two runs, one of them run to its end."""
    ledger = Ledger(None)
    job = load_job(EXAMPLE)
    for _ in range(2):
        run = start(job, ledger)
        run.search()
    run.launch()
    yield ledger
    ledger.close()


@pytest.fixture
def served(service: Any, books: Ledger) -> Any:
    service.lines = {run: books.lines(run) for run in books.runs()}
    return service


@pytest.fixture
def server(service: Any) -> Iterator[Server]:
    opened = Server(service.url, TOKEN, wait=lambda seconds: None)
    yield opened
    opened.close()


@pytest.mark.parametrize("page", [7, 500])
def test_a_server_is_read_as_the_ledger_behind_it(served: Any, server: Server, books: Ledger, page: int) -> None:
    remote = RemoteLedger(server, page)
    assert remote.runs() == books.runs()
    for run in (*books.runs(), "last"):
        assert remote.find(run) == books.find(run)
        assert remote.lines(run) == books.lines(run)
        assert remote.account(run) == books.account(run)
    assert remote.is_driven("resnet50-1") is False


def test_a_run_is_fetched_once_however_often_it_is_asked_for(served: Any, server: Server) -> None:
    remote = RemoteLedger(server)
    for _ in range(3):
        remote.lines("resnet50-1")
        remote.account("resnet50-1")
        remote.is_driven("resnet50-1")
    assert len(served.asked) == 1


def test_a_run_that_waits_or_is_not_there_is_told_in_a_line(served: Any, server: Server) -> None:
    served.lines["waits-1"] = []
    with pytest.raises(WrongState, match="run 'waits-1' is waiting for a worker"):
        RemoteLedger(server).lines("waits-1")
    with pytest.raises(UserError, match="unknown run 'nothing-1'"):
        RemoteLedger(server).lines("nothing-1")
    served.lines = {}
    with pytest.raises(UnknownName, match="unknown run 'last': there is none yet"):
        RemoteLedger(server).find("last")


def test_a_name_from_the_command_line_stays_one_step_of_the_path(served: Any, server: Server) -> None:
    for name in ("../../members", "a/b", "", "."):
        with pytest.raises(UserError, match="unknown run"):
            RemoteLedger(server).find(name)
        assert served.asked == []
    for name in ("a?c=d#e", "ü x", "..%2f"):
        with pytest.raises(UserError, match="unknown run"):
            RemoteLedger(server).find(name)
        assert served.asked[-1].path == f"/api/v1/runs/{name}/entries"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(0, 12), max_size=8))
def test_a_broken_stream_loses_no_entry_and_repeats_none(
    served: Any, server: Server, books: Ledger, cuts: list[int]
) -> None:
    served.cuts, served.asked[:] = list(cuts), []
    remote, told = RemoteLedger(server), []
    for line in watch(remote, "resnet50-2", lambda rests: _ended(told), lambda seconds: None):
        told.append(line)
    assert told == books.lines("resnet50-2")
    resumed = [int(each.headers["last-event-id"]) for each in served.asked if each.path.endswith("/events")]
    assert resumed == sorted(resumed)


def test_one_who_comes_later_is_told_only_what_is_new(served: Any, server: Server, books: Ledger) -> None:
    remote = RemoteLedger(server)
    whole = books.lines("resnet50-2")
    served.lines["resnet50-2"] = whole[:5]
    remote.account("resnet50-2")
    served.lines["resnet50-2"] = whole
    told: list[Any] = []
    for line in watch(remote, "resnet50-2", lambda rests: _ended(told), lambda seconds: None):
        told.append(line)
    assert told == whole[5:]


def test_a_server_that_is_gone_is_waited_for_and_then_given_up(served: Any, server: Server) -> None:
    served.cuts = [0] * 50
    pauses: list[float] = []
    with pytest.raises(
        ServerLost, match=r"Run 'resnet50-1' continues there; follow it again with: mlcd attach resnet50-1"
    ):
        list(watch(RemoteLedger(server), "resnet50-1", lambda rests: False, pauses.append))
    assert tuple(pauses) == BACKOFF_S
    assert sum(BACKOFF_S) >= 60


def test_a_run_that_nobody_takes_up_is_not_watched_for_ever(served: Any, server: Server) -> None:
    pauses: list[float] = []
    with pytest.raises(WrongState, match="no worker has taken it"):
        list(watch(RemoteLedger(server), "resnet50-1", lambda rests: False, pauses.append))
    assert sum(pauses) == pytest.approx(600)


def test_a_run_that_was_refused_ends_with_its_reason(served: Any, server: Server) -> None:
    served.lines["bad-1"] = []
    served.statuses["bad-1"] = "refused"
    with pytest.raises(UserError, match=r"^no such method$"):
        list(watch(RemoteLedger(server), "bad-1", lambda rests: False, lambda seconds: None))


def _ended(told: list[Any]) -> bool:
    return bool(told) and isinstance(told[-1].entry, Ended)


PLAIN = st.text(st.characters(blacklist_characters="\n\r\x85\u2028\u2029", blacklist_categories=["Cs"]), max_size=8)


@given(st.lists(st.tuples(st.sampled_from(["entry", "end"]), PLAIN, st.integers(0, 9)), max_size=5), st.booleans())
def test_events_are_read_as_they_were_written_and_one_cut_short_is_not_told(
    said: list[tuple[str, str, int]], pings: bool
) -> None:
    lines: list[str] = []
    for kind, data, number in said:
        lines += [": ping", ""] if pings else []
        lines += [f"id: {number}", f"event: {kind}", f"data: {data}", ""]
    lines += ["event: entry", "data: cut"]
    assert list(events(lines)) == [Event(kind, data, str(number)) for kind, data, number in said]


def test_an_order_is_sent_as_it_was_written(served: Any, server: Server) -> None:
    served.instead["/runs"] = _spoken(202, {"run": "demo-1"})
    order = Submission("train", {"budget": "$5", "instances": ["c5.*"]}, "name: demo", "demo.yaml")
    assert submit(server, order, launch=True) == "demo-1"
    sent = json.loads(served.asked[-1].body)
    assert sent == {
        "kind": "train",
        "options": {"budget": "$5", "instances": ["c5.*"]},
        "launch": True,
        "job": "name: demo",
        "name": "demo.yaml",
    }


def test_an_order_that_costs_real_money_is_sent_again_once_somebody_agrees(served: Any, server: Server) -> None:
    served.instead["/runs"] = _spoken(409, {"error": "It rents. To agree, send it again", "asks": "It rents."})
    order, asked = Submission("train", {"on": "skypilot"}, "name: demo"), []
    with pytest.raises(WrongState, match="To agree"):  # nobody to ask
        submit(server, order, launch=False)

    def agree(words: str) -> None:
        asked.append(words)
        served.instead["/runs"] = _spoken(202, {"run": "demo-1"})

    assert submit(server, order, False, agree) == "demo-1"
    assert asked == ["It rents."]
    assert ["yes" in json.loads(each.body) for each in served.asked] == [False, False, True]


def test_a_model_is_uploaded_before_it_is_named(served: Any, server: Server, tmp_path: Path) -> None:
    model = tmp_path / "tiny.onnx"
    model.write_bytes(b"\x08\x07onnx")
    served.instead |= {"/uploads": _spoken(201, {"upload": "ab12"}), "/runs": _spoken(202, {"run": "tiny-1"})}
    served.instead["/me"] = _spoken(200, {"places": ["simulated", "local"]})
    assert (
        submit(server, Submission("serve", {"on": "local"}, model=str(model), knobs="knobs: {}"), launch=False)
        == "tiny-1"
    )
    _, upload, run = served.asked
    assert (upload.query, upload.body) == ({"name": "tiny.onnx"}, b"\x08\x07onnx")
    assert upload.headers["content-type"] == "application/octet-stream"
    sent = {"kind": "serve", "options": {"on": "local"}, "launch": False, "knobs": "knobs: {}", "upload": "ab12"}
    assert json.loads(run.body) == sent


def test_a_model_is_not_sent_where_nothing_is_served(served: Any, server: Server, tmp_path: Path) -> None:
    model = tmp_path / "tiny.onnx"
    model.write_bytes(b"\x08\x07onnx")
    served.instead["/me"] = _spoken(200, {"places": ["simulated", "recorded"]})
    told = "runs nothing on local, only on simulated, recorded; its operator can allow it: mlcd service --places"
    with pytest.raises(UserError, match=told):
        submit(server, Submission("serve", {}, model=str(model)), launch=False)
    assert [asked.path for asked in served.asked] == ["/api/v1/me"]


def test_a_recorded_model_is_named_and_not_uploaded(served: Any, server: Server) -> None:
    served.instead["/runs"] = _spoken(202, {"run": "gpt-1"})
    submit(server, Submission("serve", {"on": "recorded:gpus"}, model="gpt2"), launch=False)
    assert json.loads(served.asked[-1].body)["model"] == "gpt2"


def test_a_model_that_is_not_here_is_told_before_anything_is_sent(served: Any, server: Server) -> None:
    with pytest.raises(UserError, match=r"nowhere\.onnx: no such file"):
        submit(server, Submission("serve", {"on": "local"}, model="nowhere.onnx"), launch=False)
    assert not served.asked


def test_what_a_server_is_told_is_answered_in_its_words(served: Any, server: Server) -> None:
    served.instead["/runs/demo-1/resume"] = _spoken(202, {"run": "demo-1", "words": "demo-1 goes on"})
    assert request_action(server, "resume", "demo-1", launch=False) == "demo-1 goes on"
    assert json.loads(served.asked[-1].body) == {"launch": False}


def test_a_log_is_followed_to_its_end_and_read_once_if_it_is_not(served: Any, server: Server) -> None:
    said = [("one ", 4, False), ("", 4, False), ("two", 7, True), ("", 7, True)]
    pieces = [_spoken(200, {"launch": 2, "text": text, "next": after, "done": done}) for text, after, done in said]
    served.instead["/runs/demo-1/logs"] = list(pieces)
    pauses: list[float] = []
    assert list(logs(server, "demo-1", 2, 0, True, pauses.append)) == ["one ", "two"]
    assert [each.query["after"] for each in served.asked] == ["0", "4", "4", "7"]
    assert len(pauses) == 1
    served.instead["/runs/demo-1/logs"] = list(pieces[:2])
    assert list(logs(server, "demo-1", None, 0, False, pauses.append)) == ["one "]
    assert [each.query.get("launch") for each in served.asked[-2:]] == [None, "2"], "another one may begin meanwhile"


def _spoken(status: int, body: dict[str, Any]) -> Any:
    """As conftest's `Spoken`: an answer in place of the usual one."""
    return SimpleNamespace(status=status, body=body, headers={})
