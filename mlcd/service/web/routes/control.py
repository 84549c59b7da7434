"""Control of a run: launch, resume, stop, take down. Only for its owner and admins."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import BaseModel, ConfigDict, Field

from mlcd.core.errors import WrongState
from mlcd.core.job import Goal
from mlcd.core.ledger import Status
from mlcd.core.options import goal_again
from mlcd.core.runs.machine import elsewhere
from mlcd.planners.form.words import parsed
from mlcd.service.team import Member, Role, recheck, release
from mlcd.service.web.answers import Answer, problems
from mlcd.service.web.failures import Refusal, unknown_is_404
from mlcd.service.web.identity import Runner, audited
from mlcd.service.web.state import CurrentState, State
from mlcd.service.workers.crew import waits
from mlcd.service.workers.lost_machine import give_up_machine
from mlcd.service.workers.submitted import from_json

router = APIRouter(prefix="/runs/{run}", tags=["control"])
Named = Annotated[str, Path(description="A run's name; `last` is the newest.")]
STATUSES = problems(404, 409, 413, 415, 422)
OVER = (Status.FINISHED, Status.FAILED, Status.INFEASIBLE)


class RunAction(Answer):
    """What happens to the run now, in words."""

    run: str = Field(description="The run's name.")
    words: str = Field(description="What happens now.")


class GoOn(BaseModel):
    """How a run goes on. What is not said stays as it was. New limits are for all of the run."""

    model_config = ConfigDict(extra="forbid", strict=True)

    launch: bool | None = Field(default=None, description="Also run what is decided, or stop there.")
    budget: str | None = Field(
        default=None, description="A new budget, such as 100, what was spent before included; none."
    )
    deadline: str | None = Field(
        default=None, description="A new deadline, such as 6h, from the run's beginning; none."
    )
    confidence: str | None = Field(
        default=None, description="How sure a certificate has to be from now on, such as 0.9."
    )


class HowDown(BaseModel):
    """`machine_gone`: the machine with the run's launches is gone for good. Only for admins."""

    model_config = ConfigDict(extra="forbid", strict=True)

    machine_gone: bool = Field(
        False, description="The machine that keeps the run's launches never comes back. Only an admin can say so."
    )


@router.post("/launch", status_code=202, responses=STATUSES)
def launch_run(run: Named, state: CurrentState, who: Runner) -> RunAction:
    """Run the decided configuration."""
    with audited(state, who, "launch", run) as note:
        note.about = name = _started(state, who, run)
        status = state.ledger.account(name).status
        if status is not Status.DECIDED:
            raise WrongState(f"run '{name}' is {status}; only what is decided can be launched")
        _check_not_driven(state, name)
        recheck(state.ledger, who, name, True)
        state.crew.send(name, True)
    return RunAction(run=name, words=f"{name} will be launched")


@router.post("/resume", status_code=202, responses=STATUSES)
def resume_run(run: Named, state: CurrentState, who: Runner, how: GoOn | None = None) -> RunAction:
    """Resume a run that was stopped, whose process died, or that ended before its work was done."""
    with audited(state, who, "resume", run) as note:
        note.about = name = _started(state, who, run)
        _check_not_driven(state, name)
        how = how or GoOn()
        launch, goal = how.launch, _new_goal(state, name, how)
        if launch is False:
            _check_not_launched(state, name, goal)
        recheck(state.ledger, who, name, launch, goal=goal)
        state.crew.send(name, _launches(state, name) if launch is None else launch)
    host = elsewhere(name, state.ledger)
    return RunAction(run=name, words=f"{name} goes on{f', once a worker on {host} takes it' if host else ''}")


@router.post("/stop", status_code=202, responses=STATUSES)
def stop_run(run: Named, state: CurrentState, who: Runner) -> RunAction:
    """Ask a run to stop, as Ctrl-C does: nothing is lost, and it can be resumed later."""
    with audited(state, who, "stop", run) as note:
        note.about = name = _owned(state, who, run)
        if waits(name, state.ledger) or state.ledger.is_driven(name):
            state.crew.stop(name)
            words = f"{name} stops at the next step"
        else:
            _check_unfinished(state, name, "stop")
            release(state.ledger, name, "stopped while nobody drove it")
            words = f"{name} is stopped"
    return RunAction(run=name, words=words)


@router.post("/down", status_code=202, responses=STATUSES)
def take_down(run: Named, state: CurrentState, who: Runner, how: HowDown | None = None) -> RunAction:
    """End a run now, whatever it is doing; its machines are torn down and their cost is settled.

    With `machine_gone`, open launches are settled at their worst-case cost.
    """
    if how is not None and how.machine_gone:
        return _without_machine(state, who, run)
    with audited(state, who, "down", run) as note:
        note.about = name = _started(state, who, run)
        account = state.ledger.account(name)
        if account.status in OVER and not account.open and not state.ledger.is_driven(name):
            raise WrongState(f"run '{name}' is {account.status}; there is nothing to take down")
        state.crew.down(name)
    return RunAction(run=name, words=f"{name} is being taken down")


def _without_machine(state: State, who: Member | None, run: str) -> RunAction:
    with audited(state, who, "machine gone", run) as note:
        note.about = name = _started(state, who, run)
        if who is not None and not who.role.may(Role.ADMIN):  # if wrong, rented machines cost on unnoticed
            raise Refusal(403, f"{who.name} is a {who.role}; only an admin can say that a machine is gone")
        note.detail = words = give_up_machine(name, state.ledger)
        state.crew.withdraw(name)
    return RunAction(run=name, words=words)


def _started(state: State, who: Member | None, run: str) -> str:
    """The name of a run that has started and belongs to them."""
    name = _owned(state, who, run)
    return state.ledger.find(name)


def _owned(state: State, who: Member | None, run: str) -> str:
    """The full name of a run, started or not; refused to members who do not own it."""
    if state.ledger.asked(run) is not None:
        name = run
    else:
        with unknown_is_404():
            name = state.ledger.find(run)
    owner, _ = state.ledger.owners().get(name, (None, None))
    if who is not None and not who.role.may(Role.ADMIN) and owner != who.name:
        raise Refusal(403, f"run '{name}' belongs to {owner or 'nobody state'}; ask them, or an admin")
    return name


def _check_unfinished(state: State, name: str, what: str) -> None:
    status = state.ledger.account(name).status
    if status in OVER:
        raise WrongState(f"run '{name}' is {status}; there is nothing to {what}")


def _check_not_launched(state: State, name: str, goal: Goal) -> None:
    """Refuse to stop at the decision after a launch, unless new limits lead to a new decision."""
    account = state.ledger.account(name)
    if goal != account.job.goal:
        return
    if account.decision is not None and (account.final_runs or account.open):
        raise WrongState(f"run '{name}' was launched, and cannot stop at its decision; resume it to its end")


def _new_goal(state: State, name: str, how: GoOn) -> Goal:
    """The new limits of the run."""
    chosen = parsed("what-if", {"budget": how.budget, "deadline": how.deadline, "confidence": how.confidence})
    return goal_again(state.ledger.account(name).job, chosen)


def _check_not_driven(state: State, name: str) -> None:
    if state.ledger.is_driven(name):
        raise WrongState(f"run '{name}' is under way already")


def _launches(state: State, name: str) -> bool:
    """Whether it was submitted with `launch`, or was launched before."""
    submission = state.ledger.asked(name)
    if submission is None:
        return bool(state.ledger.account(name).history.runs)
    return from_json(submission.asked)[1]
