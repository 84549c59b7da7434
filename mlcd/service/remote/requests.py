"""Requests to a server: preview a run, submit it, launch, resume, stop or end it, and read its logs."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from mlcd.core.errors import UserError
from mlcd.service.remote.server import NotAgreed, Server, run_path
from mlcd.service.workers.submissions import SubmissionPreview

POLL_S = 0.5  # polling interval of a log that is followed
Tell = Callable[[str], None]
Action = Literal["launch", "resume", "stop", "down"]


@dataclass(frozen=True)
class Submission:
    """A job to submit: the file's text, and the options as typed.

    To serve a model: `model`, a local file to upload or the name of one in a recording of the server; and the text of
    `knobs`. `project` and `tags`: what the run is labelled with.
    """

    kind: str
    options: Mapping[str, Any] = field(default_factory=dict)
    job: str = ""
    name: str = "job.yaml"
    model: str = ""
    knobs: str | None = None
    project: str = ""
    tags: tuple[str, ...] = ()

    def body(self, server: Server, launch: bool, yes: bool = False) -> dict[str, Any]:
        """The body of the request. A model's file is uploaded first."""
        body: dict[str, Any] = {"kind": self.kind, "options": dict(self.options), "launch": launch}
        body |= {"yes": True} if yes else {}  # an older server does not know this key, nor the next two
        body |= {"project": self.project} if self.project else {}
        body |= {"tags": list(self.tags)} if self.tags else {}
        if self.kind != "serve":
            return {**body, "job": self.job, "name": self.name}
        body |= {"knobs": self.knobs} if self.knobs is not None else {}
        if str(self.options.get("on", "")).startswith("recorded:"):
            return {**body, "model": self.model}
        path = Path(self.model)
        if not path.is_file():
            raise UserError(f"{path}: no such file; `mlcd serve` takes an ONNX model")
        _check_place(server, str(self.options.get("on") or "local"))
        return {**body, "upload": _text(server, server.upload(path), "upload")}


def preview(server: Server, submission: Submission) -> SubmissionPreview:
    """A preview of `submit`; nothing is reserved, but errors are the same."""
    answer = server.post("/checks", submission.body(server, launch=False))
    with server.reading():
        return SubmissionPreview(**{each.name: answer[each.name] for each in fields(SubmissionPreview)})


def submit(
    server: Server, submission: Submission, launch: bool, agree: Tell | None = None, note: Tell = lambda words: None
) -> str:
    """Submit a run; return its name. `launch`: whether to also run the decision.

    `agree`: called with what the run may spend if it costs real dollars; raises to cancel. `note`: gets the server's
    remark, if any.
    """
    try:
        answer = server.post("/runs", submission.body(server, launch))
    except NotAgreed as error:
        if agree is None:
            raise
        agree(error.asks)
        answer = server.post("/runs", submission.body(server, launch, yes=True))
    run = _text(server, answer, "run")
    if answer.get("note"):
        note(str(answer["note"]))
    return run


def request_action(server: Server, action: Action, run: str, *, agreed: bool = False, **more: Any) -> str:
    """Request an action on a run; return the server's words. `agreed`: to what it may spend under new limits."""
    try:
        answer = server.post(run_path(run, action), more)
    except NotAgreed:
        if not agreed:
            raise
        answer = server.post(run_path(run, action), {**more, "yes": True})  # an older server does not know this key
    return _text(server, answer, "words")


def logs(
    server: Server, run: str, launch: int | None, process: int, follow: bool, wait: Callable[[float], None] = time.sleep
) -> Iterator[str]:
    """The output of a process of the job; with `follow`, until the launch is over."""
    after = 0
    while True:
        answer = server.get(run_path(run, "logs"), launch=launch, process=process, after=after)
        with server.reading():
            text, after, done = str(answer["text"]), int(answer["next"]), bool(answer["done"])
            launch = int(answer["launch"])  # stay with it: `after` is a position in this launch's log
        if text:
            yield text
        elif done or not follow:
            return
        else:
            wait(POLL_S)


def log_parts(server: Server, run: str, launch: int | None) -> tuple[list[int], list[int]]:
    """The processes of a launch that have a log, and the ranks that the lines of the first one name."""
    answer = server.get(run_path(run, "logs/parts"), launch=launch)
    with server.reading():
        return [int(each) for each in answer["processes"]], [int(each) for each in answer["ranks"]]


def _check_place(server: Server, on: str) -> None:
    """Check the place before a model is uploaded, which may take minutes."""
    with server.reading():
        places = [str(each) for each in server.get("/me")["places"]]
    kind = on.partition(":")[0]
    if kind not in places:
        allowed = f"only on {', '.join(places)}" if places else "nor anywhere else"
        allow = "its operator can allow it: mlcd service --places"
        raise UserError(f"{server.url}: runs nothing on {kind}, {allowed}; {allow}")


def _text(server: Server, answer: Any, name: str) -> str:
    if not isinstance(answer, dict) or not isinstance(answer.get(name), str):
        raise server.unreadable()
    return str(answer[name])
