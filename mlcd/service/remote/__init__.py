"""A client of the service's API, for the command line. httpx is imported only when a server is used."""

from mlcd.service.remote.ledger import RemoteLedger, watch
from mlcd.service.remote.requests import Action, Submission, logs, request_action, submit
from mlcd.service.remote.server import Server, ServerError, ServerLost
from mlcd.service.remote.tokens import Tokens

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
