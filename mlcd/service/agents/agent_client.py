"""What the MCP tools do: requests to a service, like those of the command line.

This module only decides which requests need a person's approval. The service itself enforces budgets, roles and
places: whatever an agent sends, the ledger refuses what is over its budget.
"""

import hashlib
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from mlcd.core.errors import MlcdError, UserError, WrongState
from mlcd.core.job import only_computed
from mlcd.core.ledger import Account, Line, Status
from mlcd.core.units import format_usd
from mlcd.reports.events import entry_event
from mlcd.service.agents import answers
from mlcd.service.agents.permissions import Permissions, Step
from mlcd.service.agents.preview_probes import preview_probes
from mlcd.service.agents.questions import Question, Questions, Request
from mlcd.service.remote.ledger import RemoteLedger
from mlcd.service.remote.requests import Submission, preview
from mlcd.service.remote.server import NotAgreed, Server, run_path
from mlcd.service.workers.submissions import SubmissionPreview

Kind = Literal["train", "tune", "scale"]
MOST_EVENTS = 50
LONGEST_WAIT_S, POLL_S = 55.0, 0.25
STARTUP_GRACE_S = 60.0
"""So long after a launch or resume, a run without a driver counts as starting, not as over."""
DRIVER_ENTRIES = ("reserved", "decided", "refused", "ended", "stopped")
"""Kinds of ledger entries that only a driver writes: once there is a new one, the run has really started."""
ACTIVE, INTERRUPTED_AFTER = (Status.SEARCHING, Status.RUNNING), timedelta(seconds=15)
NOT_LIVE = ("simulated", "recorded")
SAMPLE_JOB = "name: is-it-counted\nrun: 'true'\nmlcd: {work: 1M, budget: $0.01, on: simulated}\n"
"""A job that is only previewed, never run: the preview shows whether simulated dollars count at this service."""


@dataclass
class AgentClient:
    """One agent at one service.

    `service`: its URL; '' for this machine. `recordings`: paths of the recordings on this machine, by name.
    """

    server: Server
    permissions: Permissions
    questions: Questions
    agent: str = "agent"
    service: str = ""
    recordings: Mapping[str, Path] = field(default_factory=dict)
    wait: Callable[[float], None] = time.sleep
    now: Callable[[], float] = time.monotonic
    _sent: dict[str, tuple[float, int]] = field(default_factory=dict)

    def allowance(self) -> answers.Allowance:
        """The agent's permissions and remaining budget."""
        me = self.server.get("/me")
        with self.server.reading():
            left, places, recordings = me["left_usd"], list(me["places"]), list(me["recordings"])
        permissions = self.permissions
        return answers.Allowance(
            may=permissions.may.value, words=permissions.words, left_usd=left, places=places, recordings=recordings
        )

    def plan(self, job: str, kind: Kind, options: Mapping[str, Any]) -> answers.Plan:
        """Preview a search: its space, its budget, its first probes."""
        seen, first = self._preview(job, kind, options), []
        with suppress(MlcdError):  # only the place itself knows, or it takes too long for a preview
            first = preview_probes(kind, job, options, self.recordings)
        return answers.Plan(
            job=seen.job,
            asked=seen.goal_words,
            on=seen.on,
            configurations=seen.configurations,
            types=seen.types[:40],
            budget_usd=seen.budget_usd,
            left_usd=seen.left_usd,
            first=[answers.FirstProbe(**each) for each in first],
        )

    def search(self, job: str, kind: Kind, options: Mapping[str, Any]) -> Question:
        """The request for a search that stops at its decision, with its maximum cost; nothing is sent yet."""
        seen = self._preview(job, kind, options)
        counts = seen.left_usd is not None or not only_computed(seen.on)  # real money counts even without a limit
        if counts and seen.budget_usd is None:
            left = f", with {format_usd(seen.left_usd)} left" if seen.left_usd is not None else ""
            raise UserError(f"state a budget, such as budget=5: this search counts against yours{left}")
        body = Submission(kind, options, job).body(self.server, launch=False, yes=True)
        usd, on = seen.budget_usd or 0.0, seen.on
        words = f"Search for '{seen.job}' on {on}: at most {format_usd(usd)}. It stops at its decision."
        words += "" if only_computed(on) else f" The job file's commands run on {on}."
        return self._question(words, usd if counts else 0.0, Request("/runs", body), job, counts)

    def launch(self, run: str) -> Question:
        """The request to launch a decided run, with its maximum further cost; nothing is sent yet."""
        page = self._own_run_page(run)
        summary, usd = page["summary"], _more_usd(page["summary"])
        if summary["status"] != "decided":
            raise WrongState(f"run '{run}' is {summary['status']}; only what is decided can be launched")
        words = f"Launch of {summary['chosen']} for run '{run}' on {summary['on']}: {_at_most(usd)} more."
        words += f" {page['answer']['sentence']}"
        request = Request(run_path(run, "launch"), {}, run, summary["budget_usd"], summary["chosen"])
        return self._question(words, usd if usd is not None else float("inf"), request)

    def resume(self, run: str, options: Mapping[str, Any]) -> tuple[Question, Step]:
        """The request to resume a run, maybe under new limits; and whether that continues its search or its launch."""
        page = self._own_run_page(run)
        summary = page["summary"]
        launched = self._was_launched(run)
        usd = _more_usd(summary | ({"budget_usd": float(options["budget"])} if options.get("budget") else {}))
        limits = ", ".join(f"{name} {value}" for name, value in options.items())
        words = f"Resume run '{run}' on {summary['on']}{f' with {limits}' if limits else ''}: {_at_most(usd)} more."
        body = {name: str(value) for name, value in options.items()} | {"launch": launched}
        request = Request(run_path(run, "resume"), body, run, summary["budget_usd"], summary["chosen"])
        question = self._question(words, usd if usd is not None else float("inf"), request)
        return question, "launch" if launched else "search"

    def counts(self, question: Question) -> bool:
        """Whether the request counts against the agent's budget; only then it may need a person's approval."""
        run = question.request.run
        if run is None:
            return question.counts
        provenance = self._page(run)["summary"]["provenance"]
        return provenance not in NOT_LIVE or self._counts_simulated()

    def request_approval(self, question: Question) -> answers.Begun:
        """Store a question for a person to answer with `mlcd yes`."""
        name = self.questions.ask(question)
        say = f"Nothing was started. {question.words} Ask your user to say yes in a terminal: mlcd yes {name}"
        say += f"; then call go_on with '{name}'."
        return answers.Begun(
            status="waiting_for_yes", run=question.request.run, worst_usd=question.worst_usd, question=name, say=say
        )

    def go_on(self, name: str) -> answers.Begun:
        """Carry out, once, what a person has approved."""
        return self.carry_out(self.questions.take(name, self.agent, self.service))

    def carry_out(self, question: Question) -> answers.Begun:
        """Send the request. Refused if the run's budget or decision has changed since the person saw it."""
        request = question.request
        if request.run is not None:
            summary = self._page(request.run)["summary"]
            if (summary["budget_usd"], summary["chosen"]) != (request.budget_usd, request.chosen):
                what = "budget" if summary["budget_usd"] != request.budget_usd else "decision"
                raise WrongState(f"the {what} of run '{request.run}' has changed since the question; ask again")
            self._sent[request.run] = (self.now(), RemoteLedger(self.server).lines(request.run)[-1].seq)
        answer = self._post_agreed(request)
        with self.server.reading():
            run = str(answer["run"])
        say = f"Follow it with watch('{run}'), read its answer with answer('{run}')."
        return answers.Begun(status="started", run=run, worst_usd=question.worst_usd, question=None, say=say)

    def _post_agreed(self, request: Request) -> Any:
        """Post a request; agree to real money, since this client has already obtained the approval it needs."""
        try:
            return self.server.post(request.path, request.body)
        except NotAgreed:
            # Only now: an older server does not know the key `yes`.
            return self.server.post(request.path, {**request.body, "yes": True})

    def stop(self, run: str) -> answers.Done:
        """Ask one of the agent's runs to stop."""
        answer = self.server.post(run_path(run, "stop"))
        with self.server.reading():
            return answers.Done(run=str(answer["run"]), words=str(answer["words"]))

    def runs(self, status: str | None, text: str | None, limit: int) -> answers.Runs:
        """The newest runs."""
        found = self.server.get("/runs", status=status, text=text, limit=limit)
        with self.server.reading():
            return answers.Runs(runs=[_run(each) for each in found["runs"]], total=found["total"])

    def answer(self, run: str) -> answers.Answer:
        """A run's result."""
        page = self._page(run)
        with self.server.reading():
            result, figures = (
                page["answer"],
                {card["name"]: f"{card['value']} ({card['note']})" for card in page["cards"]},
            )
            return answers.Answer(
                **_run(page["summary"]).model_dump(),
                sentence=result["sentence"],
                more=result["more"],
                next=page["next"],
                figures=figures,
            )

    def compare(self, runs: list[str]) -> answers.Comparison:
        """Several runs side by side, as the Compare page shows them."""
        found = self.server.get("/compare", runs=",".join(runs))
        with self.server.reading():
            return answers.Comparison.of(found)

    def what_if(self, run: str, options: Mapping[str, Any]) -> answers.WhatIf:
        """The decision under another goal."""
        found = self.server.get(run_path(run, "what-if"), **options)
        with self.server.reading():
            certificate = found["certificate"]["sentence"] if found["certificate"] else None
            return answers.WhatIf(
                run=found["run"],
                asked=found["goal_words"],
                words=found["words"],
                chosen=found["label"],
                certificate=certificate,
                not_certain=found["not_certain"],
            )

    def offers(self, options: Mapping[str, Any]) -> answers.Offers:
        """Offers of the catalog."""
        found = self.server.get("/offers", **options)
        with self.server.reading():
            rows = [_offer(each) for each in found["offers"]]
            return answers.Offers(offers=rows, total=found["total"])

    def watch(self, run: str, after: int, wait_s: float) -> answers.Watched:
        """The new events of a run; waits until there is one, or the run is over."""
        until = self.now() + min(wait_s, LONGEST_WAIT_S)
        while True:
            watched = self._new_events(run, after)
            if watched.events or watched.over or self.now() >= until:
                return watched
            self.wait(POLL_S)

    def _new_events(self, run: str, after: int) -> answers.Watched:
        ledger, account = RemoteLedger(self.server), Account()
        lines = ledger.newer(run)
        if not lines:
            return answers.Watched(run=run, status="queued", over=False, events=[], last=0)
        new: list[answers.Event] = []
        for line in lines:
            account = account.after(line.entry, line.elapsed_s)
            if line.seq > after and len(new) < MOST_EVENTS:
                event = entry_event(line, account)
                new.append(answers.Event(**{name: getattr(event, name) for name in answers.Event.model_fields}))
        last, newest = new[-1].seq if new else after, lines[-1].seq
        idle = not ledger.is_driven(run) and not self._was_just_sent(run, lines)
        status = str(account.status)
        if status in ACTIVE and idle:  # the service may not know yet who drives it
            idle = datetime.now(UTC) - lines[-1].written_at > INTERRUPTED_AFTER
            status = "interrupted" if idle else status
        return answers.Watched(run=run, status=status, over=idle and last >= newest, events=new, last=last)

    def _was_just_sent(self, run: str, lines: list[Line]) -> bool:
        """Whether the run was just launched or resumed here, and its driver has not written anything yet."""
        sent_at, seq = self._sent.get(run, (float("-inf"), 0))
        shown = any(line.seq > seq and line.entry.kind in DRIVER_ENTRIES for line in lines)
        return self.now() - sent_at < STARTUP_GRACE_S and not shown

    def _preview(self, job: str, kind: Kind, options: Mapping[str, Any]) -> SubmissionPreview:
        return preview(self.server, Submission(kind, options, job))

    def _question(self, words: str, usd: float, request: Request, text: str = "", counts: bool = True) -> Question:
        return Question(" ".join(words.split()), usd, request, text, self.agent, self.service, counts)

    def _page(self, run: str) -> dict[str, Any]:
        page: dict[str, Any] = self.server.get(run_path(run))
        return page

    def _own_run_page(self, run: str) -> dict[str, Any]:
        """The page of one of this agent's runs; `UserError` if it is somebody else's, or on a place it may not use.

        The place is checked again because an earlier server of this agent may have allowed more places.
        """
        if run == "last":
            raise UserError("name the run: 'last' may be another run by the time a person says yes")
        page, me = self._page(run), self.server.get("/me")
        summary = page["summary"]
        if summary["owner"] != me["name"]:
            owner = summary["owner"] or "the command line"
            raise UserError(f"run '{run}' belongs to {owner}; you can only launch or resume your own")
        if not only_computed(summary["on"]) and summary["on"].partition(":")[0] not in me["places"]:
            raise UserError(f"run '{run}' is on {summary['on']}; you may only use {', '.join(me['places'])}")
        return page

    def _was_launched(self, run: str) -> bool:
        account = RemoteLedger(self.server).account(run)
        return account.decision is not None and bool(account.final_runs or account.open)

    def _counts_simulated(self) -> bool:
        return preview(self.server, Submission("train", {}, SAMPLE_JOB)).left_usd is not None


def _more_usd(summary: Mapping[str, Any]) -> float | None:
    budget = summary["budget_usd"]
    return None if budget is None else max(0.0, budget - summary["spent_usd"])


def _at_most(usd: float | None) -> str:
    return "without a limit" if usd is None else f"at most {format_usd(usd)}"


def _run(summary: Mapping[str, Any]) -> answers.Run:
    names = [name for name in answers.Run.model_fields if name != "asked"]
    return answers.Run(**{name: summary[name] for name in names}, asked=summary["goal_words"])


def _offer(row: Mapping[str, Any]) -> answers.Offer:
    names = [name for name in answers.Offer.model_fields if name != "gpu"]
    many, kind = row["accelerators"], row["accelerator"]
    return answers.Offer(**{name: row[name] for name in names}, gpu=f"{many} x {kind}" if kind else "")


def approval_text(question: Question) -> str:
    """A question with its whole job file, for a person to read, without terminal control characters."""
    text = question.text
    fingerprint = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
    where = [f"At {question.service}, by '{question.agent}'."] if question.service else []
    lines = [question.words, *where, *([f"Its job file ({fingerprint}):", *text.splitlines()] if text else [])]
    return "\n".join(map(printable, lines))


def printable(line: str) -> str:
    """The line with every unprintable character replaced, so that it cannot control a terminal."""
    return "".join(letter if letter.isprintable() else "?" for letter in line)
