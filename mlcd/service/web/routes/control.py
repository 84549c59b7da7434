"""What becomes of a run: launch what was decided, go on, stop, take down. Only its owner may, and admins."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict

from mlcd.core.errors import WrongState
from mlcd.core.job import Goal
from mlcd.core.ledger import Status
from mlcd.core.runs.machine import elsewhere
from mlcd.planners.form.goal import goal_again
from mlcd.planners.form.words import parsed
from mlcd.service.team import Member, Role, recheck, release
from mlcd.service.web.answers import Answer, problems
from mlcd.service.web.failures import Refusal, named
from mlcd.service.web.identity import Runner, noted
from mlcd.service.web.state import Here, State
from mlcd.service.workers.asked import from_json
from mlcd.service.workers.crew import waits
from mlcd.service.workers.lost_machine import give_up_machine

router = APIRouter(prefix="/runs/{run}", tags=["control"])
STATUSES = problems(404, 409, 413, 415, 422)
OVER = (Status.FINISHED, Status.FAILED, Status.INFEASIBLE)


class Done(Answer):
    """What was asked of a run, in words."""

    run: str
    words: str


class GoOn(BaseModel):
    """How a run goes on. `launch`: also run what is decided, or stop there; as it was asked before, if nobody says.

    `budget`, `deadline`: new limits for all of the run, what was spent before included, as on the command line.
    `confidence`: how sure a certificate has to be from now on.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    launch: bool | None = None
    budget: str | None = None
    deadline: str | None = None
    confidence: str | None = None


class HowDown(BaseModel):
    """`machine_gone`: the machine that keeps the run's launches never comes back. Only an admin can say so."""

    model_config = ConfigDict(extra="forbid", strict=True)

    machine_gone: bool = False


@router.post("/launch", status_code=202, responses=STATUSES)
def launch_run(run: str, here: Here, who: Runner) -> Done:
    """Run what a search has decided."""
    with noted(here, who, "launch", run) as note:
        note.about = name = _begun(here, who, run)
        status = here.ledger.account(name).status
        if status is not Status.DECIDED:
            raise WrongState(f"run '{name}' is {status}; only what is decided can be launched")
        _free(here, name)
        recheck(here.ledger, who, name, True)
        here.crew.send(name, True)
    return Done(run=name, words=f"{name} will be launched")


@router.post("/resume", status_code=202, responses=STATUSES)
def resume_run(run: str, here: Here, who: Runner, how: GoOn | None = None) -> Done:
    """Go on with a run that was stopped, whose process died, or that ended before its work was done."""
    with noted(here, who, "resume", run) as note:
        note.about = name = _begun(here, who, run)
        _free(here, name)
        how = how or GoOn()
        launch, goal = how.launch, _new_goal(here, name, how)
        if launch is False:
            _not_launched(here, name, goal)
        recheck(here.ledger, who, name, launch, goal=goal)
        here.crew.send(name, _launches(here, name) if launch is None else launch)
    host = elsewhere(name, here.ledger)
    return Done(run=name, words=f"{name} goes on{f', once a worker on {host} takes it' if host else ''}")


@router.post("/stop", status_code=202, responses=STATUSES)
def stop_run(run: str, here: Here, who: Runner) -> Done:
    """Ask a run to stop, as Ctrl-C does: nothing is lost, and it can go on later."""
    with noted(here, who, "stop", run) as note:
        note.about = name = _owned(here, who, run)
        if waits(name, here.ledger) or here.ledger.is_driven(name):
            here.crew.stop(name)
            words = f"{name} stops at the next step"
        else:
            _unfinished(here, name, "stop")
            release(here.ledger, name, "stopped while nobody drove it")
            words = f"{name} is stopped"
    return Done(run=name, words=words)


@router.post("/down", status_code=202, responses=STATUSES)
def take_down(run: str, here: Here, who: Runner, how: HowDown | None = None) -> Done:
    """End a run now, whatever it is doing; its machines are torn down and what they cost is settled.

    If the machine that keeps them is gone, so that nobody can: what was open counts at the most it can have cost.
    """
    if how is not None and how.machine_gone:
        return _without_machine(here, who, run)
    with noted(here, who, "down", run) as note:
        note.about = name = _begun(here, who, run)
        account = here.ledger.account(name)
        if account.status in OVER and not account.open and not here.ledger.is_driven(name):
            raise WrongState(f"run '{name}' is {account.status}; there is nothing to take down")
        here.crew.down(name)
    return Done(run=name, words=f"{name} is being taken down")


def _without_machine(here: State, who: Member | None, run: str) -> Done:
    with noted(here, who, "machine gone", run) as note:
        note.about = name = _begun(here, who, run)
        if who is not None and not who.role.may(Role.ADMIN):  # rented machines that are not gone would cost on, unseen
            raise Refusal(403, f"{who.name} is a {who.role}; only an admin can say that a machine is gone")
        note.detail = words = give_up_machine(name, here.ledger)
        here.crew.withdraw(name)
    return Done(run=name, words=words)


def _begun(here: State, who: Member | None, run: str) -> str:
    """A run that has begun, and that is theirs."""
    name = _owned(here, who, run)
    return here.ledger.find(name)


def _owned(here: State, who: Member | None, run: str) -> str:
    """The whole name of a run, begun or not; refused to whom it does not belong."""
    if here.ledger.asked(run) is not None:
        name = run
    else:
        with named():
            name = here.ledger.find(run)
    owner, _ = here.ledger.owners().get(name, (None, None))
    if who is not None and not who.role.may(Role.ADMIN) and owner != who.name:
        raise Refusal(403, f"run '{name}' belongs to {owner or 'nobody here'}; ask them, or an admin")
    return name


def _unfinished(here: State, name: str, what: str) -> None:
    status = here.ledger.account(name).status
    if status in OVER:
        raise WrongState(f"run '{name}' is {status}; there is nothing to {what}")


def _not_launched(here: State, name: str, goal: Goal) -> None:
    """Who wants to stop at the decision must be there still, or before it; under new limits it is decided again."""
    account = here.ledger.account(name)
    if goal != account.job.goal:
        return
    if account.decision is not None and (account.final_runs or account.open):
        raise WrongState(f"run '{name}' was launched, and cannot stop at its decision; resume it to its end")


def _new_goal(here: State, name: str, how: GoOn) -> Goal:
    """The limits that the run has from now on."""
    chosen = parsed("what-if", {"budget": how.budget, "deadline": how.deadline, "confidence": how.confidence})
    return goal_again(here.ledger.account(name).job, chosen)


def _free(here: State, name: str) -> None:
    if here.ledger.is_driven(name):
        raise WrongState(f"run '{name}' is under way already")


def _launches(here: State, name: str) -> bool:
    """Whether it was submitted to be launched, or had been."""
    asked = here.ledger.asked(name)
    if asked is None:
        return bool(here.ledger.account(name).history.runs)
    return from_json(asked.asked)[1]
