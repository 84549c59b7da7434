"""Questions that wait for a person's yes. The agent gets a question's id, and `mlcd yes ID` in a terminal answers it.

A question is a file of MLCD_HOME, `ID.asked`; a yes renames it to `ID.agreed`, and what was asked for is done by who
first takes that file away. So a yes counts once, whichever server asks, and for exactly what the person saw.
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
LASTS_S = 3600.0
"""After that a question, and a yes that nobody made use of, is void."""
MOST_OPEN = 20
"""Questions of all agents of this machine: a person has to be able to read them."""
_ID = re.compile(r"[a-z2-7]{8}")
_LETTERS = "abcdefghijklmnopqrstuvwxyz234567"


@dataclass(frozen=True)
class Request:
    """What would be sent to the service: a route and a body; the run's budget and decision as the person saw them."""

    path: str
    body: dict[str, Any]
    run: str | None = None
    budget_usd: float | None = None
    chosen: str | None = None


@dataclass(frozen=True)
class Question:
    """`words`: what is asked. `worst_usd`: what it can cost at the most. `text`: the job file, for the person.

    `counts`: whether it counts against the agent's budget.
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
    """The questions in a folder. `now`: seconds of the day's clock."""

    def __init__(self, home: Path, now: Callable[[], float] = time.time) -> None:
        self._folder, self._now = home / "questions", now

    def ask(self, question: Question) -> str:
        """Keep a question; return its id."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._drop_old()
        if len(list(self._folder.iterdir())) >= MOST_OPEN:
            raise WrongState(f"{MOST_OPEN} questions wait for a yes already; a person has to answer some: mlcd yes")
        name = "".join(secrets.choice(_LETTERS) for _ in range(8))
        path = self._folder / f"{name}.new"
        path.touch(mode=0o600)
        path.write_text(json.dumps(asdict(question) | {"id": name, "asked_at": self._now()}), encoding="utf-8")
        path.rename(self._folder / f"{name}{ASKED}")
        return name

    def waiting(self) -> list[Question]:
        """The questions that nobody has answered, the oldest first."""
        self._drop_old()
        waiting = []
        for path in self._folder.glob(f"*{ASKED}") if self._folder.is_dir() else ():
            with suppress(FileNotFoundError):  # answered meanwhile
                waiting.append(_read(path))
        return sorted(waiting, key=lambda each: each.asked_at)

    def find(self, name: str) -> Question:
        """A question that waits for its answer."""
        self._drop_old()
        try:
            return _read(self._folder / f"{_checked(name)}{ASKED}")
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
        """What was agreed to, once; `WrongState` while nobody has said yes."""
        self._drop_old()
        question = self._agreed(name)
        if (question.agent, question.service) != (agent, service):
            raise UserError(f"question '{name}' is not one of this agent's")
        self._move(name, AGREED, ".taken")  # of several who try, one gets here
        (self._folder / f"{name}.taken").unlink()
        return question

    def _agreed(self, name: str) -> Question:
        path = self._folder / f"{_checked(name)}{AGREED}"
        if (self._folder / f"{name}{ASKED}").is_file():
            raise WrongState(f"nobody has said yes to '{name}' yet; your user does that in a terminal: mlcd yes {name}")
        try:
            return _read(path)
        except FileNotFoundError:
            raise UserError(f"no yes for '{name}': it was a no, is older than an hour, or was used already") from None

    def _move(self, name: str, before: str, after: str) -> None:
        try:
            (self._folder / f"{name}{before}").rename(self._folder / f"{name}{after}")
        except FileNotFoundError:
            raise UserError(f"no yes for '{name}': it was used already") from None

    def _drop_old(self) -> None:
        for path in self._folder.iterdir() if self._folder.is_dir() else ():
            with suppress(FileNotFoundError):  # another process has renamed or dropped it
                if self._age_s(path) > LASTS_S:
                    path.unlink()

    def _age_s(self, path: Path) -> float:
        try:
            return self._now() - _read(path).asked_at
        except (ValueError, KeyError, TypeError):  # half written: by a process that is at it, or was killed
            return time.time() - path.stat().st_mtime


def _checked(name: str) -> str:
    """An id, which becomes a part of a path."""
    if not _ID.fullmatch(name):
        raise UserError(f"'{name[:40]}' is no question's id; those that wait for a yes: mlcd yes")
    return name


def _read(path: Path) -> Question:
    data = json.loads(path.read_text(encoding="utf-8"))
    return Question(**data | {"request": Request(**data["request"])})
