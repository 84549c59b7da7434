"""mlcd train, launch, resume: search, ask, run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mlcd.cli.confirm import agree_to_limits, agree_to_rent
from mlcd.cli.functions import allocation_options, target_loss
from mlcd.cli.messages import agreed, can_ask, confirm_detached, go_detached, print_end, print_note
from mlcd.cli.options import (
    confidence,
    consoles,
    duration,
    job_file,
    job_options,
    open_ledger,
    output,
    read_job,
    run_name,
    usd,
    with_options,
)
from mlcd.cli.server import chosen_server, typed_options
from mlcd.cli.submissions import submission_of_file
from mlcd.cli.variables import env_option, with_variables
from mlcd.core.errors import UserError

if TYPE_CHECKING:
    from mlcd.cli.hangup import Permission
    from mlcd.core.job import Job
    from mlcd.core.runs.run import Run
    from mlcd.reports.progress import ProgressLine


limit_options = (
    click.option("--budget", metavar="USD", callback=usd, help="A new budget for all of the run, such as 120; 'none'."),
    click.option("--deadline", metavar="TIME", callback=duration, help="A new deadline for all of it: 9h; 'none'."),
    confidence,
)
begin_from = click.option(
    "--from",
    "begin_from",
    metavar="RUN",
    default="",
    help="Start from a copy of the checkpoint of this earlier run.",
)
detached = click.option("--detach", is_flag=True, help="Continue without this terminal; `mlcd attach RUN` follows it.")
run_options = (
    click.option("--decide-only", is_flag=True, help="Stop at the decision; `mlcd launch RUN` runs it later."),
    click.option("-y", "--yes", is_flag=True, help="Spend real money, and run the decision, without asking."),
    detached,
    output,
)


@click.command()
@job_file
@with_options((*job_options, target_loss, *allocation_options, env_option, begin_from, *run_options))
def train(
    job_path: Path, begin_from: str, decide_only: bool, yes: bool, detach: bool, output: str, **chosen: Any
) -> int:
    """Probe, decide, show the decision, ask, and run the job.

    Options override the job file. The defaults: fastest, no limit, on the simulated cloud, by net-value. Before
    machines are rented for real money, you are asked: without a terminal, pass -y. Otherwise nothing is asked without
    a terminal, and the decision is run.

    \b
    mlcd train job.yaml --budget 100
    mlcd train job.yaml --goal cheapest --deadline 6h --decide-only
    mlcd train job.yaml --on local -y
    mlcd train job.yaml --on local -y --detach
    """
    return begin_file("train", job_path, chosen, decide_only, yes, output, detach=detach, begin_from=begin_from)


@click.command()
@run_name
@with_options((detached, output))
def launch(run: str, detach: bool, output: str) -> int:
    """Run the decision of a search.

    \b
    mlcd launch last
    """
    if (server := chosen_server()) is not None:
        from mlcd.cli.remote_runs import launch_remote

        return launch_remote(server, run, output, detach=detach)
    from mlcd.cli.hangup import survive_hangup
    from mlcd.cli.interrupt import stop_on_ctrl_c
    from mlcd.cli.live import Live
    from mlcd.core.ledger import Resumed
    from mlcd.core.runs.run import resume
    from mlcd.reports.text import Narrator

    ledger = open_ledger()
    _, progress = consoles()
    name, live = ledger.find(run), Live(progress, ledger)
    with ExitStack() as held:
        held.enter_context(ledger.hold(name))  # before it is read: another process may write
        held.enter_context(live.showing(name))
        on_entry = live.listener(Narrator(progress, ledger.account(name)))
        resumed = resume(name, ledger, on_entry, live.report)
        if detach:
            resumed.launchable()  # raises if it cannot be launched
            if resumed.book.account.stopped:
                resumed.book.write(Resumed("the user went on"))  # a detached process does not resume a stopped run
            held.close()
            return go_detached(name, ledger, True, output)
        with (
            survive_hangup(name, launch=True),
            stop_on_ctrl_c(progress, "the job itself", soon=resumed.job.checkpoints) as stop,
        ):
            resumed.launch(stop)
        live.line.close()
        return _print_result(resumed, output)


@click.command()
@run_name
@with_options((*limit_options, *run_options))
def resume(run: str, decide_only: bool, yes: bool, detach: bool, output: str, **chosen: Any) -> int:
    """Resume a run that was stopped or killed, or ended early.

    No finished probe is paid for twice, and saved work is not repeated. The job file is not read again. A new limit is
    for the whole run, including what was already spent.

    \b
    mlcd resume last
    mlcd resume last --budget 120
    """
    if (server := chosen_server()) is not None:
        from mlcd.cli.remote_runs import resume_remote

        return resume_remote(server, run, typed_options(chosen), decide_only, yes, output, detach=detach)
    from mlcd.cli.live import Live
    from mlcd.core.options import goal_again
    from mlcd.core.runs.run import go_on
    from mlcd.reports.text import Narrator

    ledger = open_ledger()
    _, progress = consoles()
    name, live = ledger.find(run), Live(progress, ledger)
    with ExitStack() as held:
        held.enter_context(ledger.hold(name))  # before it is read: another process may write
        held.enter_context(live.showing(name))
        before = ledger.account(name)
        on_entry = live.listener(Narrator(progress, before))
        goal = goal_again(before.job, chosen)
        agree_to_limits(before.job, goal, yes)
        if detach:
            confirm_detached(decide_only, yes)
        resumed = go_on(name, ledger, on_entry, live.report, goal)
        if detach:
            held.close()
            return go_detached(name, ledger, not decide_only, output)
        return see_through(resumed, decide_only, yes, output, live.line)


def begin_file(
    kind: str,
    path: Path,
    chosen: Mapping[str, Any],
    decide_only: bool,
    yes: bool,
    output: str,
    *,
    detach: bool = False,
    begin_from: str = "",
) -> int:
    """Start a run of a job file, here or on the chosen server."""
    variables = chosen.get("variables") or {}
    chosen = {name: value for name, value in chosen.items() if name != "variables"}
    if (server := chosen_server()) is not None:
        if begin_from:
            raise UserError("--from begins from a checkpoint of this machine: leave out --server")
        from mlcd.cli.remote_runs import begin_remote

        if variables:
            raise UserError("--env is for runs that this machine drives; for a server, write `envs:` in the job file")
        return begin_remote(server, submission_of_file(kind, path, chosen), decide_only, yes, output, detach=detach)
    job = with_variables(read_job(kind, path, chosen), variables)
    return begin(job, decide_only, yes, output, detach=detach, begin_from=begin_from)


def begin(
    job: Job,
    decide_only: bool,
    yes: bool,
    output: str,
    beforehand: Callable[[Run], str] = lambda run: run.cloud.lacks,
    *,
    detach: bool = False,
    begin_from: str = "",
) -> int:
    """Start a run of a job and drive it to its end. `beforehand`: a note to print before anything is measured.

    `detach`: a separate process drives it, and the user is not asked any more. `begin_from`: an earlier run whose
    checkpoint this one starts from.
    """
    from mlcd.cli.live import Live
    from mlcd.core.runs.run import start
    from mlcd.reports.text import Narrator

    ledger = open_ledger()
    _, progress = consoles()
    live = Live(progress, ledger)
    if detach:
        confirm_detached(decide_only, yes)
    with ExitStack() as held:
        on_entry, agree = live.listener(Narrator(progress)), partial(agree_to_rent, yes=yes)
        run = start(job, ledger, on_entry, live.report, held=held, begin_from=begin_from, agree=agree)
        print_note(beforehand(run), progress)
        if detach:
            held.close()
            return go_detached(run.name, ledger, not decide_only, output)
        held.enter_context(live.showing(run.name))
        return see_through(run, decide_only, yes, output, live.line)


def see_through(run: Run, decide_only: bool, yes: bool, output: str, line: ProgressLine | None = None) -> int:
    """Drive the run from its current state to its end: search, show, ask, launch."""
    from mlcd.cli.hangup import survive_hangup

    with survive_hangup(run.name, launch=not decide_only and (yes or not can_ask())) as permission:
        return _see_through(run, decide_only, yes, output, line, permission)


def _see_through(
    run: Run, decide_only: bool, yes: bool, output: str, line: ProgressLine | None, permission: Permission
) -> int:
    from mlcd.cli.interrupt import stop_on_ctrl_c
    from mlcd.core.errors import Interrupted
    from mlcd.core.planner import planner_of
    from mlcd.reports.text import show_decision

    results, progress = consoles()
    with stop_on_ctrl_c(progress, "what is being probed") as pressed:
        decision = run.search(pressed)
    _close(line)
    if output == "table":
        show_decision(results, run.book.account, decision, run.job.goal)
    go = decision.configuration is not None and not decide_only and planner_of(run.job).launches
    if go and pressed():  # during the last probe: there was no further step to stop before
        raise Interrupted(f"interrupted; the decision is kept. Go on with: mlcd resume {run.name}")
    if go := go and (yes or decision.done or agreed()):
        permission.launch = True
        with stop_on_ctrl_c(progress, "the job itself", soon=run.job.checkpoints) as pressed:
            run.launch(pressed)
        _close(line)
    return _print_result(run, output, launched=go)


def _close(line: ProgressLine | None) -> None:
    if line is not None:
        line.close()


def _print_result(run: Run, output: str, *, launched: bool = True) -> int:
    return print_end(run.name, run.book.account, lambda: run.ledger.lines(run.name), output, launched=launched)
