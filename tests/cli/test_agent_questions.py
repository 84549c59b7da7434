"""A yes counts once, for what the person saw, and only a person at a terminal can say it."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from mlcd.core.errors import MlcdError
from mlcd.core.exit_codes import ExitCode
from mlcd.service.agents.agent_client import approval_text
from mlcd.service.agents.permissions import PermissionLevel, Permissions
from mlcd.service.agents.questions import EXPIRES_AFTER_S, MOST_OPEN, Question, Questions, Request

Mlcd = Callable[..., Any]
ASKED = Question(
    "Search for 'demo' on skypilot: at most $5.00.", 5.0, Request("/runs", {"kind": "train"}), agent="agent"
)


@dataclass
class Now:
    """The time of day."""

    seconds: float = 1e9

    def __call__(self) -> float:
        return self.seconds


class Terminal(io.StringIO):
    """Somebody who types this."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def now() -> Now:
    return Now()


@pytest.fixture
def questions(tmp_path: Path, now: Now) -> Questions:
    return Questions(tmp_path, now)


def refused(do: Callable[[], object]) -> str:
    with pytest.raises(MlcdError) as error:
        do()
    return str(error.value)


def test_what_is_done_is_what_was_asked_and_once(questions: Questions) -> None:
    name = questions.ask(ASKED)
    assert "nobody has said yes" in refused(lambda: questions.take(name, "agent", ""))
    questions.agree(name)
    assert questions.take(name, "agent", "") == ASKED.__class__(**{**vars_of(ASKED), "asked_at": 1e9})
    assert "was used already" in refused(lambda: questions.take(name, "agent", ""))
    assert "no question" in refused(lambda: questions.agree(name))


def vars_of(question: Question) -> dict[str, Any]:
    return {name: getattr(question, name) for name in question.__dataclass_fields__}


def test_of_many_who_use_a_yes_at_once_one_gets_it(questions: Questions) -> None:
    name = questions.ask(ASKED)
    questions.agree(name)

    def take(_: int) -> bool:
        try:
            questions.take(name, "agent", "")
        except MlcdError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(take, range(50))) == 1


@pytest.mark.parametrize(("agent", "service"), [("another", ""), ("agent", "https://elsewhere")])
def test_a_yes_is_for_the_agent_that_asked(questions: Questions, agent: str, service: str) -> None:
    name = questions.ask(ASKED)
    questions.agree(name)
    assert "not one of this agent's" in refused(lambda: questions.take(name, agent, service))
    questions.take(name, "agent", "")


def test_a_question_and_a_yes_are_void_after_an_hour(questions: Questions, now: Now) -> None:
    asked, agreed = questions.ask(ASKED), questions.ask(ASKED)
    questions.agree(agreed)
    now.seconds += EXPIRES_AFTER_S + 1
    assert "no question" in refused(lambda: questions.agree(asked))
    assert "older than an hour" in refused(lambda: questions.take(agreed, "agent", ""))
    assert questions.waiting() == []


@pytest.mark.parametrize("name", ["", ".", "../ledger", "a/b", "AAAAAAAA", "aaaaaaaa\n", "a" * 9, "aaaa\0aaa"])
def test_a_name_is_no_path(questions: Questions, name: str) -> None:
    for do in (questions.find, questions.agree, questions.decline):
        assert "is not the id of a question" in refused(lambda do=do: do(name))
    assert "is not the id of a question" in refused(lambda: questions.take(name, "agent", ""))


def test_a_person_is_not_flooded(questions: Questions) -> None:
    for _ in range(MOST_OPEN):
        questions.ask(ASKED)
    assert "a person has to answer some" in refused(lambda: questions.ask(ASKED))


def test_a_job_file_cannot_control_the_terminal_that_shows_it() -> None:
    shown = approval_text(Question("words", 1.0, Request("/runs", {}), "run: \x1b[2Jrm\r\nname: a\u202eb"))
    assert all(line.isprintable() for line in shown.split("\n"))
    assert "run: ?[2Jrm" in shown


def test_the_list_of_questions_cannot_control_the_terminal_either(mlcd: Mlcd, home: Path) -> None:
    Questions(home).ask(replace(ASKED, words="Search for '\x1b]0;x\x07' on skypilot"))
    assert "Search for '?]0;x?' on skypilot" in mlcd("yes").out


def test_a_question_that_is_just_being_written_disturbs_nobody(questions: Questions, tmp_path: Path) -> None:
    """Its file is renamed between the look at the folder and the look at the file: here, a link to nothing."""
    questions.ask(ASKED)
    (tmp_path / "questions" / "aaaaaaaa.asked").symlink_to(tmp_path / "gone")
    assert [each.words for each in questions.waiting()] == [ASKED.words]
    assert "no question" in refused(lambda: questions.find("aaaaaaaa"))


def test_only_somebody_at_a_terminal_can_say_yes(mlcd: Mlcd, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    questions = Questions(home)
    name = questions.ask(ASKED)
    assert f"{name}  agent: Search for 'demo'" in mlcd("yes").out
    assert mlcd("yes", name).code == ExitCode.YES_NEEDED
    monkeypatch.setattr("mlcd.cli.mcp.can_ask", lambda: True)
    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    assert mlcd("yes", name).code == ExitCode.YES_NEEDED
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    answer = mlcd("yes", name)
    assert answer.code == ExitCode.DONE
    assert "at most $5.00" in answer.err
    assert questions.take(name, "agent", "").worst_usd == 5.0
    assert mlcd("yes", "-o", "json").document == {"questions": []}


def test_no_is_the_end_of_a_question(mlcd: Mlcd, home: Path) -> None:
    name = Questions(home).ask(ASKED)
    assert mlcd("yes", name, "--no").code == ExitCode.DONE
    assert mlcd("yes", name).code == ExitCode.REFUSED


def test_what_is_asked_about() -> None:
    asked = {
        (may, yes): [Permissions(may, yes).needs_approval(step) for step in ("search", "launch")]
        for may in PermissionLevel
        for yes in (False, True)
    }
    assert asked[PermissionLevel.PROBE, False] == [True, True]
    assert asked[PermissionLevel.PROBE, True] == [False, True]
    assert asked[PermissionLevel.LAUNCH, False] == [False, False]
