"""mlcd mcp, mlcd yes: serve AI assistants, and approve what they ask for."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mlcd.cli.messages import can_ask
from mlcd.cli.options import SAFE_PLACES, consoles, output, parsed_by, print_json
from mlcd.core.errors import MissingExtra, UserError, YesNeeded
from mlcd.core.home import home, private_home
from mlcd.core.units import parse_usd

if TYPE_CHECKING:
    from mlcd.service.agents.agent_client import AgentClient
    from mlcd.service.agents.permissions import Permissions
    from mlcd.service.remote.server import Server

TOKEN = "MLCD_MCP_TOKEN"


@click.command()
@click.option(
    "--may",
    type=click.Choice(["look", "probe", "launch"]),
    default="look",
    show_default=True,
    help="What the agent may do; each level includes those before it.",
)
@click.option(
    "--budget",
    metavar="USD",
    callback=parsed_by(parse_usd),
    help="Most dollars for everything that this agent ever does. Default: as given last time.",
)
@click.option("-y", "--yes", is_flag=True, help="With --may probe: let it search within the budget without asking you.")
@click.option(
    "--ask",
    type=click.Choice(["client", "terminal"]),
    default="client",
    show_default=True,
    help="Where you approve: in the assistant, if it can ask; or only with `mlcd yes`.",
)
@click.option(
    "--name", default="agent", show_default=True, help="The agent's name; its runs and dollars are counted by name."
)
@click.option(
    "--places",
    default=SAFE_PLACES,
    show_default=True,
    help="Where its jobs may run, comma-separated: simulated, recorded, local, functions, ray, skypilot.",
)
@click.option("--recordings", metavar="DIR", type=click.Path(path_type=Path), help="Recordings that jobs may name.")
@click.option("--count-simulated", is_flag=True, help="Also count simulated and recorded dollars, to test the limits.")
@click.option("--service", "url", metavar="URL", help="Use a team's service, with the agent as a member of it.")
@click.option("--token", metavar="TOKEN", envvar="MLCD_TOKEN", help="That member's token; safer as MLCD_TOKEN.")
@click.option(
    "--http",
    metavar="PORT",
    type=click.IntRange(0, 65535),
    help="Serve streamable HTTP on this loopback port instead of stdio; 0: any free port.",
)
def mcp(http: int | None, **options: Any) -> None:
    """Serve AI assistants by the Model Context Protocol (MCP).

    These options say what the agent may do; nothing that it sends can change that.

    \b
    mlcd mcp
    mlcd mcp --may probe --budget 20 --places simulated,skypilot
    mlcd mcp --may launch --service https://mlcd.example.org
    """
    try:
        import mcp as sdk  # noqa: F401
    except ImportError:
        raise MissingExtra("mlcd mcp", "mcp") from None
    with opened_agent_client(**options) as client:
        _serve(client, http)


def opened_agent_client(
    may: str,
    budget: float | None,
    yes: bool,
    ask: str,
    name: str,
    places: str,
    recordings: Path | None,
    count_simulated: bool,
    url: str | None,
    token: str | None,
) -> AbstractContextManager[AgentClient]:
    """What the agent's tools work with, by the options of `mlcd mcp`."""
    from mlcd.service.agents.permissions import ApprovalChannel, PermissionLevel, Permissions

    permissions = Permissions(PermissionLevel(may), yes, ApprovalChannel(ask))
    if yes and permissions.may is not PermissionLevel.PROBE:
        raise UserError("-y works only with --may probe; look starts nothing, and launch asks nothing")
    if url is not None:
        return _of_a_team(url, token, permissions, budget, places, recordings, count_simulated)
    return _of_this_machine(name, permissions, budget, places, recordings, count_simulated)


@click.command()
@click.argument("question", required=False)
@click.option("--no", "no", is_flag=True, help="Decline; the request is deleted.")
@output
def yes(question: str | None, no: bool, output: str) -> None:
    """Approve what an AI assistant asks for.

    Without QUESTION, it lists what waits for approval. An approval works once, and needs a terminal.

    \b
    mlcd yes
    mlcd yes k3x7q2ab
    """
    from mlcd.service.agents.agent_client import approval_text, printable
    from mlcd.service.agents.questions import Questions

    questions = Questions(home())
    if question is None:
        waiting = questions.waiting()
        if output == "json":
            print_json({"questions": [{"id": q.id, "agent": q.agent, "words": q.words} for q in waiting]})
            return
        for each in waiting:
            consoles()[0].print(printable(f"{each.id}  {each.agent}: {each.words}"), markup=False)
        if not waiting:
            consoles()[0].print("Nothing waits for approval.")
        return
    asked = questions.find(question)
    if no:
        questions.decline(question)
        click.echo("declined; nothing is started")
        return
    if not can_ask():
        raise YesNeeded(f"only a person at a terminal can approve: mlcd yes {question}")
    click.echo(approval_text(asked), err=True)
    if not click.confirm("Proceed?", default=False, err=True):
        raise YesNeeded(f"not approved; nothing is started. To delete the request: mlcd yes {question} --no")
    questions.agree(question)
    click.echo("approved; the agent can continue now")


@contextmanager
def _of_this_machine(
    name: str,
    permissions: Permissions,
    budget: float | None,
    places: str,
    recordings: Path | None,
    count_simulated: bool,
) -> Iterator[AgentClient]:
    """An agent on this machine's ledger."""
    from mlcd.cli.http_server import places_in, recordings_in
    from mlcd.service.agents.agent_client import AgentClient
    from mlcd.service.agents.local_service import AgentLimits, local_service
    from mlcd.service.agents.permissions import PermissionLevel
    from mlcd.service.agents.questions import Questions
    from mlcd.service.workers.process import warm_up

    if os.environ.get("MLCD_DATABASE_URL") or os.environ.get("MLCD_DATABASE_URL_FILE"):
        raise UserError("MLCD_DATABASE_URL names a team's database: use its service, mlcd mcp --service URL")
    chosen = places_in(places)
    real = [place for place in chosen if place not in ("simulated", "recorded")]
    if permissions.may is not PermissionLevel.LOOK and budget is None and (real or count_simulated):
        raise UserError(
            f"--places {places}: give the agent a budget for everything that it ever does there, such as --budget 20"
        )
    if not os.environ.get("MLCD_HOME"):
        private_home()
    found = recordings_in(recordings)
    warm_up()
    limits = AgentLimits(name, budget, chosen, found, count_simulated)
    with local_service(home(), limits) as server:
        yield AgentClient(server, permissions, Questions(home()), name, "", found)


@contextmanager
def _of_a_team(
    url: str, token: str | None, permissions: Permissions, budget: float | None, *of_this_machine: Any
) -> Iterator[AgentClient]:
    """An agent that is a member of a team; the service keeps its role and its budget."""
    from contextlib import closing

    from mlcd.cli.server import tokens
    from mlcd.service.agents.agent_client import AgentClient
    from mlcd.service.agents.questions import Questions
    from mlcd.service.remote.server import Server

    if budget is not None:
        raise UserError(
            "--budget: with --service, set it for the member on the service: "
            "mlcd team add claude --role runner --budget 20"
        )
    if of_this_machine != (SAFE_PLACES, None, False):
        raise UserError("--places, --recordings and --count-simulated are set by the service: leave them out")
    stored = tokens()
    opened = (
        Server(url, token, "--token or MLCD_TOKEN")
        if token
        else Server(url, stored.get(url), f"the token in {stored.path}")
    )
    with closing(opened) as server:
        name = _checked_member(server, permissions)
        from mlcd.service.workers.process import warm_up

        warm_up()
        yield AgentClient(server, permissions, Questions(home()), name, server.url)


def _checked_member(server: Server, permissions: Permissions) -> str:
    """The member's name. Refused: an admin, and one without a budget if the agent may spend."""
    from mlcd.service.agents.permissions import PermissionLevel

    me = server.get("/me")
    with server.reading():
        name, role, left = me["name"], me["role"], me["left_usd"]
    if name is None:
        raise UserError(f"{server.url}: this is mlcd ui, which has no members; for this machine leave out --service")
    if role == "admin":
        raise UserError(f"{server.url}: '{name}' is an admin; add a member for the agent: mlcd team add")
    if permissions.may is not PermissionLevel.LOOK and role == "viewer":
        raise UserError(f"{server.url}: '{name}' is a viewer; --may {permissions.may} needs a runner")
    if permissions.may is not PermissionLevel.LOOK and left is None:
        raise UserError(f"{server.url}: '{name}' has no budget; set one: mlcd team change {name} --budget 20")
    return str(name)


def _serve(client: AgentClient, http: int | None) -> None:
    """Serve until the assistant closes the connection, or Ctrl-C."""
    from mlcd.service.agents.server import http_app, mcp_server

    server = mcp_server(client)
    if http is None:
        server.run("stdio")
        return
    from mlcd.cli.http_server import address, listening_socket, serve
    from mlcd.service.team.members import new_secret

    token = os.environ.get(TOKEN) or new_secret()
    with listening_socket("127.0.0.1", http) as listener:
        url = f"{address(listener)}/mcp"

        def begun() -> None:
            told = f"the token in {TOKEN}" if os.environ.get(TOKEN) else f"Authorization: Bearer {token}"
            click.echo(f"MLCD serves assistants at {url}; {told}", err=True)
            sys.stderr.flush()

        serve(http_app(server, token), listener, begun, behind_proxy=False)
