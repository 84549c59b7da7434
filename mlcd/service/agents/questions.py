"""Requests of agents that wait for a person's approval. `mlcd yes ID` in a terminal approves one.

A question is a file `ID.asked` in MLCD_HOME/questions. A yes renames it to `ID.agreed`. The server that carries out the
request first renames that file again, which only one of several can do. So a yes works once, and for exactly what the
person saw.
"""

import json
import re
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from mlcd.core.errors import UserError, WrongState

ASKED, AGREED = ".asked", ".agreed"
EXPIRES_AFTER_S = 3600.0
"""Older questions, and older approvals that were not used, are deleted."""
MOST_OPEN = 20
"""The most open questions of all agents on this machine: a person has to be able to read them."""
_ID = re.compile(r"[a-z2-7]{8}")
_LETTERS = "abcdefghijklmnopqrstuvwxyz234567"


@dataclass(frozen=True)
class Request:
    """The request to send after approval, with the run's budget and decision as the person saw them."""

    path: str
    body: dict[str, Any]
    run: str | None = None
    budget_usd: float | None = None
    chosen: str | None = None


@dataclass(frozen=True)
class Question:
    """A question for a person. `words`: the question. `worst_usd`: the maximum cost. `text`: the job file.

    `counts`: whether the request counts against the agent's budget.
    """

    words: str
    worst_usd: float
    request: Request
    text: str = ""
    agent: str = ""
    service: str = ""
    counts: bool = True
    asked_at: float = 0.0
    id: str = field(default="", compare=False)


class Questions:
    """The questions in a folder. `now`: the clock, in seconds since the epoch."""

    def __init__(self, home: Path, now: Callable[[], float] = time.time) -> None:
        self._folder, self._now = home / "questions", now

    def ask(self, question: Question) -> str:
        """Store a question; return its id."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._delete_expired()
        if len(list(self._folder.iterdir())) >= MOST_OPEN:
            raise WrongState(f"{MOST_OPEN} questions already wait for a yes; a person has to answer some: mlcd yes")
        name = "".join(secrets.choice(_LETTERS) for _ in range(8))
        path = self._folder / f"{name}.new"
        path.touch(mode=0o600)
        path.write_text(json.dumps(asdict(question) | {"id": name, "asked_at": self._now()}), encoding="utf-8")
        path.rename(self._folder / f"{name}{ASKED}")
        return name

    def waiting(self) -> list[Question]:
        """The unanswered questions, oldest first."""
        self._delete_expired()
        waiting = []
        for path in self._folder.glob(f"*{ASKED}") if self._folder.is_dir() else ():
            with suppress(FileNotFoundError):  # answered meanwhile
                waiting.append(_read(path))
        return sorted(waiting, key=lambda each: each.asked_at)

    def find(self, name: str) -> Question:
        """An unanswered question."""
        self._delete_expired()
        try:
            return _read(self._folder / f"{_checked_id(name)}{ASKED}")
        except FileNotFoundError:
            raise UserError(f"no question '{name}' waits for a yes; those that do: mlcd yes") from None

    def agree(self, name: str) -> None:
        """A person says yes."""
        self.find(name)
        self._move(name, ASKED, AGREED)

    def decline(self, name: str) -> None:
        """A person says no."""
        self.find(name)
        (self._folder / f"{name}{ASKED}").unlink(missing_ok=True)

    def take(self, name: str, agent: str, service: str) -> Question:
        """An approved question, which can be taken once; `WrongState` while nobody has said yes."""
        self._delete_expired()
        question = self._agreed(name)
        if (question.agent, question.service) != (agent, service):
            raise UserError(f"question '{name}' is not one of this agent's")
        self._move(name, AGREED, ".taken")  # of several that try at once, only one succeeds
        (self._folder / f"{name}.taken").unlink()
        return question

    def _agreed(self, name: str) -> Question:
        path = self._folder / f"{_checked_id(name)}{AGREED}"
        if (self._folder / f"{name}{ASKED}").is_file():
            raise WrongState(f"nobody has said yes to '{name}' yet; your user does that in a terminal: mlcd yes {name}")
        try:
            return _read(path)
        except FileNotFoundError:
            raise UserError(
                f"no yes for '{name}': it was declined, is older than an hour, or was used already"
            ) from None

    def _move(self, name: str, before: str, after: str) -> None:
        try:
            (self._folder / f"{name}{before}").rename(self._folder / f"{name}{after}")
        except FileNotFoundError:
            raise UserError(f"no yes for '{name}': it was used already") from None

    def _delete_expired(self) -> None:
        for path in self._folder.iterdir() if self._folder.is_dir() else ():
            with suppress(FileNotFoundError):  # another process has renamed or dropped it
                if self._age_s(path) > EXPIRES_AFTER_S:
                    path.unlink()

    def _age_s(self, path: Path) -> float:
        try:
            return self._now() - _read(path).asked_at
        except (ValueError, KeyError, TypeError):  # half written: its process is still writing, or was killed
            return time.time() - path.stat().st_mtime


def _checked_id(name: str) -> str:
    """The id, if it is valid: it becomes a part of a path."""
    if not _ID.fullmatch(name):
        raise UserError(f"'{name[:40]}' is not the id of a question; list them with: mlcd yes")
    return name


def _read(path: Path) -> Question:
    data = json.loads(path.read_text(encoding="utf-8"))
    return Question(**data | {"request": Request(**data["request"])})
