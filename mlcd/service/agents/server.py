"""The MCP server over stdio or streamable HTTP. Only this file and tools.py import the MCP SDK."""

import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import PlainTextResponse

from mlcd.core.version import VERSION
from mlcd.service.agents.agent_client import AgentClient
from mlcd.service.agents.tools import add_tools

INSTRUCTIONS = """MLCD finds the right cloud configuration for training, tuning or scaling a model: it tries a few with
short probes, decides, and runs the job, all within a budget and a deadline. Call allowance first. plan costs nothing;
search probes and stops at a decision; launch runs the job. A ledger records every dollar and enforces limits that you
cannot change. When a tool answers waiting_for_yes, tell your user the question and the command in its answer, and wait:
only a person can say yes."""
Message = MutableMapping[str, Any]
App = Callable[[Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]]


def mcp_server(client: AgentClient) -> MCPServer:
    """The server of one agent."""
    mcp = MCPServer("mlcd", title="MLCD", instructions=INSTRUCTIONS, version=VERSION, log_level="WARNING")
    add_tools(mcp, client)
    return mcp


def http_app(mcp: MCPServer, token: str) -> App:
    """The server at /mcp, protected by a token: all users of a machine can reach its loopback."""
    hosts = ["127.0.0.1:*", "localhost:*", "[::1]:*"]
    security = TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=[f"http://{host}" for host in hosts])
    inner = mcp.streamable_http_app(transport_security=security)
    wanted = f"Bearer {token}".encode()

    async def app(scope: Message, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            sent = dict(scope["headers"]).get(b"authorization", b"")
            if not hmac.compare_digest(sent, wanted):
                headers = {"WWW-Authenticate": "Bearer"}
                refusal = PlainTextResponse("a token is required: `mlcd mcp --http` printed it\n", 401, headers)
                await refusal(scope, receive, send)
                return
        await inner(scope, receive, send)

    return app
