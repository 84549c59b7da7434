"""Actions on a run: launch, resume, stop, take down. Only for its owner and admins."""

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import Field

from mlcd.core.errors import WrongState
from mlcd.core.ledger import Status
from mlcd.core.options import goal_again
from mlcd.core.part import Part
from mlcd.core.runs.run_machine import other_machine
from mlcd.planners.form.option_parsers import parse_options
from mlcd.service.team.allowance import recheck, release
from mlcd.service.team.members import Member, Role
from mlcd.service.web.errors import Refusal, RequestBody, error_responses, unknown_is_404
from mlcd.service.web.identity import Runner, audited
from mlcd.service.web.routes.submit import check_agreed
from mlcd.service.web.state import CurrentState, State
from mlcd.service.workers.cleanup import give_up_machine
from mlcd.service.workers.submissions import asks_to_launch, waits

router = APIRouter(prefix="/runs/{run}", tags=["control"], responses=error_responses(404, 409, 413, 415, 422))
Named = Annotated[str, Path(description="A run's name; `last` is the newest.")]
OVER = (Status.FINISHED, Status.FAILED, Status.INFEASIBLE)


class RunAction(Part):
    """What happens to the run now, in words."""

    run: str = Field(description="The run's name.")
    words: str = Field(description="What happens now.")


class GoOn(RequestBody):
    """How to resume a run. What is not given stays as it was. New limits are totals for the whole run."""

    launch: bool | None = Field(default=None, description="Also run what is decided, or stop there.")
    budget: str | None = Field(default=None, description="A new budget for all of the run, such as 100; none.")
    deadline: str | None = Field(default=None, description="A new deadline from the run's beginning, such as 6h; none.")
    confidence: str | None = Field(default=None, description="How sure a new certificate has to be, such as 0.9.")
    yes: bool = Field(
        default=False,
        description="Agrees to spend real money up to new limits; without it: 409, and `asks`.",
    )


class HowDown(RequestBody):
    """How to take a run down. `machine_gone`: its machine is lost for good; only for admins."""

    machine_gone: bool = Field(False, description="The machine with the run's launches will never come back.")


@router.post("/launch", status_code=202)
def launch_run(run: Named, state: CurrentState, who: Runner) -> RunAction:
    """Run the decided configuration."""
    with audited(state, who, "launch", run) as note:
        note.about = name = _started(state, who, run)
        status = state.ledger.account(name).status
        if status is not Status.DECIDED:
            raise WrongState(f"run '{name}' is {status}; only what is decided can be launched")
        _check_not_driven(state, name)
        recheck(state.ledger, who, name, True)
        state.send(name, True)
    return RunAction(run=name, words=f"{name} will be launched")


@router.post("/resume", status_code=202)
def resume_run(run: Named, state: CurrentState, who: Runner, how: GoOn | None = None) -> RunAction:
    """Resume a run that was stopped, whose process died, or that ended before its work was done."""
    with audited(state, who, "resume", run) as note:
        note.about = name = _started(state, who, run)
        _check_not_driven(state, name)
        how, account = how or GoOn(), state.ledger.account(name)
        goal = goal_again(account.job, parse_options("what-if", how.model_dump(exclude={"launch", "yes"})))
        if goal != account.job.goal:
            check_agreed(replace(account.job, goal=goal), how.yes)
        was_launched = account.decision is not None and (account.final_runs or account.open)
        if how.launch is False and was_launched and goal == account.job.goal:  # new limits lead to a new decision
            raise WrongState(f"run '{name}' was launched, and cannot stop at its decision; resume it to its end")
        recheck(state.ledger, who, name, how.launch, goal=goal)
        state.send(name, _launches(state, name) if how.launch is None else how.launch)
    host = other_machine(name, state.ledger)
    return RunAction(run=name, words=f"{name} continues{f' as soon as a worker on {host} takes it' if host else ''}")


@router.post("/stop", status_code=202)
def stop_run(run: Named, state: CurrentState, who: Runner) -> RunAction:
    """Ask a run to stop, as Ctrl-C does: nothing is lost, and it can be resumed later."""
    with audited(state, who, "stop", run) as note:
        note.about = name = owned(state, who, run)
        if waits(name, state.ledger) or state.ledger.is_driven(name):
            state.executor.stop(name)
            words = f"{name} stops at the next step"
        else:
            if (status := state.ledger.account(name).status) in OVER:
                raise WrongState(f"run '{name}' is {status}; there is nothing to stop")
            release(state.ledger, name, "stopped while no process drove it")
            words = f"{name} is stopped"
    return RunAction(run=name, words=words)


@router.post("/down", status_code=202)
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
        state.executor.down(name)
    return RunAction(run=name, words=f"{name} is being taken down")


def _without_machine(state: State, who: Member | None, run: str) -> RunAction:
    with audited(state, who, "machine gone", run) as note:
        note.about = name = _started(state, who, run)
        if who is not None and not who.role.may(Role.ADMIN):  # if it is not true, rented machines cost on unnoticed
            raise Refusal(403, f"{who.name} is a {who.role}; only an admin can say that a machine is gone")
        note.detail = words = give_up_machine(name, state.ledger)
        state.executor.withdraw(name)
    return RunAction(run=name, words=words)


def _started(state: State, who: Member | None, run: str) -> str:
    """The name of a run that has started and belongs to them."""
    return state.ledger.find(owned(state, who, run))


def owned(state: State, who: Member | None, run: str) -> str:
    """The full name of a run, started or not; refused to members who do not own it."""
    with unknown_is_404():
        name = run if state.ledger.submission(run) is not None else state.ledger.find(run)
    owner, _ = state.ledger.owners().get(name, (None, None))
    if who is not None and not who.role.may(Role.ADMIN) and owner != who.name:
        raise Refusal(403, f"run '{name}' belongs to {owner or 'nobody'}; ask them, or an admin")
    return name


def _check_not_driven(state: State, name: str) -> None:
    if state.ledger.is_driven(name):
        raise WrongState(f"run '{name}' is already under way")


def _launches(state: State, name: str) -> bool:
    """Whether it was submitted with `launch`, or was launched before."""
    if state.ledger.submission(name) is None:
        return bool(state.ledger.account(name).history.runs)
    return asks_to_launch(name, state.ledger)
