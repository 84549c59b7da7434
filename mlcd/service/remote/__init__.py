"""A client of the service's API, for the command line. httpx is imported only when a server is used."""

from mlcd.service.remote.failures import ServerError, ServerLost
from mlcd.service.remote.ledger import RemoteLedger
from mlcd.service.remote.requests import Action, Submission, logs, request_action, submit
from mlcd.service.remote.server import Server
from mlcd.service.remote.tokens import Tokens
from mlcd.service.remote.watch import watch

__all__ = [
    "Action",
    "RemoteLedger",
    "Server",
    "ServerError",
    "ServerLost",
    "Submission",
    "Tokens",
    "logs",
    "request_action",
    "submit",
    "watch",
]
