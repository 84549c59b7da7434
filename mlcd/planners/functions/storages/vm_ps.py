"""A client of our parameter server: `vm-ps`, tcp://host:port."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from mlcd.core.clock import Clock
from mlcd.planners.functions.storages.storage import PATIENCE_S, Patient, StorageError, some
from mlcd.planners.functions.storages.vectors import Vector, from_bytes, to_bytes
from mlcd.planners.functions.storages.wire import Header, hear, say

LOOK_S = 5.0
"""How long one question waits for the others to come; then it is asked again."""
SILENT_S = 30.0


class ParameterServerStorage(Patient):
    """Storage and average in one. A server that has restarted is gone: what was sent to it is lost."""

    def __init__(
        self, host: str, port: int, url: str, clock: Clock | None = None, patience_s: float = PATIENCE_S
    ) -> None:
        super().__init__("vm-ps", url, clock, patience_s)
        self._address = (host, port)
        self._life: str | None = None
        self._socket: socket.socket | None = None

    def put(self, key: str, value: bytes) -> None:
        """Keep this under that key."""
        self._exchange({"do": "put", "key": key}, value)

    def get(self, key: str) -> bytes | None:
        """What is under that key; None if nothing is."""
        answer, body = self._exchange({"do": "get", "key": key})
        return bytes(body) if answer["is"] == "value" else None

    def delete(self, keys: Sequence[str]) -> None:
        """Forget these."""
        self._exchange({"do": "delete", "keys": list(keys)})

    def clear(self, prefix: str) -> None:
        """Forget the blobs and groups whose names begin so."""
        self._exchange({"do": "clear", "prefix": some(prefix)})

    def average(
        self, group: str, step: int, rank: int, functions: int, vector: Vector, timeout_s: float
    ) -> Vector | tuple[int, ...]:
        """The mean over all ranks; after `timeout_s` without it, the ranks that did not come."""
        until_s = self.clock.elapsed_s() + timeout_s
        where = {"group": group, "step": step}
        push = {"do": "push", **where, "rank": rank, "functions": functions, "wait_s": min(timeout_s, LOOK_S)}
        answer, body = self._exchange(push, to_bytes(vector))
        while answer["is"] == "waiting" and (left_s := until_s - self.clock.elapsed_s()) > 0:
            answer, body = self._exchange({"do": "pull", **where, "wait_s": min(left_s, LOOK_S)})
        if answer["is"] == "waiting":
            return tuple(answer["missing"])
        if answer["is"] == "over":
            raise self.gone(f"does not know the round: {answer['why']}")
        return from_bytes(body)

    def close(self) -> None:
        """Let go of the connection."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _exchange(self, question: Header, body: bytes = b"") -> tuple[Header, bytearray]:
        """Ask, and ask again where the connection breaks: nothing that is asked counts twice."""
        answer, data = self.ask(lambda: self._once(question | {"life": self._life}, body))
        if self._life not in (None, answer["life"]):
            raise self.gone("has restarted, and lost what it held")
        self._life = answer["life"]
        if answer["is"] == "refused":
            raise StorageError(f"{self.name} at {self.url}: {answer['why']}")
        return answer, data

    def _once(self, question: Header, body: bytes) -> tuple[Header, bytearray]:
        try:
            if self._socket is None:
                connect_s = min(SILENT_S, max(self.patience_s, 1.0))
                self._socket = socket.create_connection(self._address, timeout=connect_s)
                self._socket.settimeout(SILENT_S)
                self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            say(self._socket, question, body)
            return hear(self._socket)
        except OSError:
            self.close()
            raise
