"""What a server is asked to do: say what it would run, begin a run, go on with it, end it, show what the job wrote."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from mlcd.core.errors import UserError
from mlcd.service.remote.failures import NotAgreed
from mlcd.service.remote.server import Server, run_path

BETWEEN_S = 0.5
"""Between two looks at a log that is followed."""
Deed = Literal["launch", "resume", "stop", "down"]


@dataclass(frozen=True)
class Order:
    """A job as it is sent: the file's text, and the options as they were written.

    Of a service: the `model`, a file here to be uploaded, or the name of one in a recording there; and the text of
    `knobs`.
    """

    kind: str
    options: Mapping[str, Any] = field(default_factory=dict)
    job: str = ""
    name: str = "job.yaml"
    model: str = ""
    knobs: str | None = None

    def body(self, server: Server, launch: bool, yes: bool = False) -> dict[str, Any]:
        """What is sent. A model's file is uploaded first."""
        said: dict[str, Any] = {"kind": self.kind, "options": dict(self.options), "launch": launch}
        said |= {"yes": True} if yes else {}  # an older server knows no such word
        if self.kind != "serve":
            return {**said, "job": self.job, "name": self.name}
        said |= {"knobs": self.knobs} if self.knobs is not None else {}
        if str(self.options.get("on", "")).startswith("recorded:"):
            return {**said, "model": self.model}
        path = Path(self.model)
        if not path.is_file():
            raise UserError(f"{path}: no such file; `mlcd serve` takes an ONNX model")
        _check_place(server, str(self.options.get("on") or "local"))
        return {**said, "upload": _told(server, server.upload(path), "upload")}


@dataclass(frozen=True)
class Foreseen:
    """What a server would run. `configurations`: None where only trying tells; `left_usd`: None for no limit."""

    job: str
    goal_words: str
    on: str
    configurations: int | None
    types: list[str]
    budget_usd: float | None
    left_usd: float | None


def foresee(server: Server, order: Order) -> Foreseen:
    """What `submit` would begin there; nothing is reserved, and what would be refused is refused."""
    told = server.post("/checks", order.body(server, launch=False))
    with server.reading():
        return Foreseen(**{each.name: told[each.name] for each in fields(Foreseen)})


def submit(
    server: Server,
    order: Order,
    launch: bool,
    agree: Callable[[str], None] | None = None,
    note: Callable[[str], None] = lambda words: None,
) -> str:
    """Begin a run there; its name. `launch`: whether the decision is run, too.

    `agree`: asked where the run would be billed in real dollars, with what it may spend; raises to leave it. `note`
    gets what the server adds.
    """
    try:
        answer = server.post("/runs", order.body(server, launch))
    except NotAgreed as error:
        if agree is None:
            raise
        agree(error.asks)
        answer = server.post("/runs", order.body(server, launch, yes=True))
    run = _told(server, answer, "run")
    if answer.get("note"):
        note(str(answer["note"]))
    return run


def tell(server: Server, deed: Deed, run: str, **more: Any) -> str:
    """Tell the server to do this with a run; its words."""
    return _told(server, server.post(run_path(run, deed), more), "words")


def logs(
    server: Server, run: str, launch: int | None, process: int, follow: bool, wait: Callable[[float], None] = time.sleep
) -> Iterator[str]:
    """What a process of the job has written; with `follow`, also what it will write until the launch is over."""
    after = 0
    while True:
        answer = server.get(run_path(run, "logs"), launch=launch, process=process, after=after)
        with server.reading():
            text, after, done = str(answer["text"]), int(answer["next"]), bool(answer["done"])
            launch = int(answer["launch"])  # of a newer launch, what is left after so many bytes would be no beginning
        if text:
            yield text
        elif done or not follow:
            return
        else:
            wait(BETWEEN_S)


def _check_place(server: Server, on: str) -> None:
    """Before a model is sent, which may take minutes: whether anything is tried there at all."""
    with server.reading():
        places = [str(each) for each in server.get("/me")["places"]]
    kind = on.partition(":")[0]
    if kind not in places:
        allowed = f"only on {', '.join(places)}" if places else "nor anywhere else"
        raise UserError(f"{server.url}: runs nothing on {kind}, {allowed}; who runs it may: mlcd service --places")


def _told(server: Server, answer: Any, name: str) -> str:
    if not isinstance(answer, dict) or not isinstance(answer.get(name), str):
        raise server.unreadable()
    return str(answer[name])
