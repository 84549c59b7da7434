"""MLCD on another machine: the command line's side of the service's API. httpx is imported when a server is asked."""

from mlcd.remote.failures import ServerError, ServerLost
from mlcd.remote.ledger import RemoteLedger
from mlcd.remote.orders import Deed, Order, logs, submit, tell
from mlcd.remote.server import Server
from mlcd.remote.tokens import Tokens
from mlcd.remote.watch import watch

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
