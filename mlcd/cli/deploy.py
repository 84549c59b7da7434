"""mlcd deploy: keep what `mlcd serve` has chosen running, and watch its caps."""

from __future__ import annotations

from dataclasses import replace

import click

from mlcd.cli.messages import RunOptions
from mlcd.cli.options import open_ledger, output, parsed_by, print_json, run_name
from mlcd.cli.server import chosen_server
from mlcd.core.errors import UserError, WrongState
from mlcd.core.job import Job
from mlcd.core.ledger import Account, Decided, Ledger, LimitsChanged
from mlcd.core.runs.run import decide_again, resume
from mlcd.core.units import format_duration, format_usd, parse_usd
from mlcd.planners.serve.llm.replicas import chosen_trial
from mlcd.planners.serve.nouns import serving_task


@click.command()
@run_name
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on; 0.0.0.0 for all.")
@click.option("--port", default=8000, show_default=True, type=click.IntRange(1, 65_535), help="The port to listen on.")
@click.option(
    "--budget", metavar="USD", callback=parsed_by(parse_usd), help="A new budget for the whole run, trials included."
)
@click.option("--foreground", is_flag=True, help="Stay in this terminal until Ctrl-C.")
@output
def deploy(run: str, host: str, port: int, budget: float | None, foreground: bool, output: str) -> None:
    """Run the language model server that `mlcd serve` chose, on this machine.

    It runs until its budget is used up, or until `mlcd down RUN`. Its caps are monitored: if it keeps exceeding them,
    the ledger says so, and it is measured again within the rest of the budget.

    \b
    mlcd deploy last
    mlcd deploy last --port 8001 --budget 50
    """
    deploy_run(run, host, port, budget, foreground, output)


def deploy_run(
    run: str,
    host: str = "127.0.0.1",
    port: int = 8000,
    budget: float | None = None,
    foreground: bool = False,
    output: str = "table",
) -> None:
    """Deploy a run's decision, in a process of its own unless it stays in the foreground."""
    from mlcd.service.workers.deployed import detach_deployment, keep_running

    if chosen_server() is not None:
        raise UserError("mlcd deploy works only on this machine: leave out --server, or use mlcd export")
    ledger = open_ledger()
    name = ledger.find(run)
    _check(name, ledger.account(name))
    if budget is not None:
        _raise_budget(name, ledger, budget)
    if foreground:
        click.echo(keep_running(name, ledger, host, port))
        return
    process, url = detach_deployment(name, ledger, host, port)
    account = ledger.account(name)
    if output == "json":
        print_json({"run": name, "url": f"{url}/v1", "process": process, "lifetime_s": _lifetime_s(account)})
        return
    click.echo(f"Deployed at {url}/v1 by process {process}; {_price(account)}.")
    click.echo(f"Follow it: mlcd logs -f {name}, mlcd ledger {name}. End it: mlcd down {name}")


def begin_and_deploy(job: Job, options: RunOptions) -> int:
    """`mlcd serve --deploy`: find the deployment, then keep it running; refused before anything is spent."""
    from mlcd.cli.drive import begin

    _check_place("--deploy: this job", job)
    code = begin(job, options)
    if code == 0:
        deploy_run("last", output=options.output)
    return code


def _check_place(what: str, job: Job) -> None:
    task = serving_task(job)
    if task is None:
        raise WrongState(f"{what} trains a job, and serves no model; mlcd deploy is for runs of mlcd serve")
    if task.language is None:
        raise WrongState(f"{what} does not serve a language model: deploy it with mlcd export")
    engine = task.language.engine
    if engine.runs_already and job.on.startswith("recorded"):
        raise WrongState(f"{what} replayed a recording, which has no engine to start")
    if engine.runs_already:
        raise WrongState(f"{what} uses an engine that runs already, which MLCD does not start")
    if job.on != "local":
        raise WrongState(f"{what} was not tried on this machine: deploy it with mlcd export")


def _check(name: str, account: Account) -> None:
    """Refuse a run that cannot be deployed here."""
    _check_place(f"run '{name}'", account.job)
    if account.open:
        raise WrongState(f"run '{name}' is running already; end it first: mlcd down {name}")
    chosen_trial(name, account)


def _raise_budget(name: str, ledger: Ledger, budget: float) -> None:
    """Another budget for the whole run; what was chosen is decided again from the stored trials."""
    with ledger.hold(name):
        stored = resume(name, ledger)
        goal = replace(stored.job.goal, budget_usd=budget)
        if budget <= stored.book.account.history.spent_usd:
            spent = format_usd(stored.book.account.history.spent_usd)
            raise UserError(
                f"--budget {format_usd(budget)}: {spent} is spent already, and the budget is for the whole run"
            )
        decision = decide_again(stored.book.account, goal)
        stored.book.write(LimitsChanged(goal, "the user deploys it"), Decided(decision))


def _lifetime_s(account: Account) -> float | None:
    return account.open[0].launch.lifetime_s if account.open else None


def _price(account: Account) -> str:
    """'$0.10 an hour, until its budget is used up in 31 h'."""
    if not account.open:
        return "it has ended already"
    order, lifetime_s = account.open[0].launch, _lifetime_s(account)
    until = (
        "until you end it" if lifetime_s is None else f"until its budget is used up in {format_duration(lifetime_s)}"
    )
    return f"{format_usd(order.configuration.usd_per_hour)} an hour, {until}"
