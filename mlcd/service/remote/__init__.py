"""MLCD on another machine: the command line's side of the service's API. httpx is imported when a server is asked."""

from mlcd.service.remote.failures import ServerError, ServerLost
from mlcd.service.remote.ledger import RemoteLedger
from mlcd.service.remote.orders import Deed, Order, logs, submit, tell
from mlcd.service.remote.server import Server
from mlcd.service.remote.tokens import Tokens
from mlcd.service.remote.watch import watch

__all__ = [
    "Deed",
    "Order",
    "RemoteLedger",
    "Server",
    "ServerError",
    "ServerLost",
    "Tokens",
    "logs",
    "submit",
    "tell",
    "watch",
]
