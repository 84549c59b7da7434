"""Our parameter server: `python -m mlcd.planners.functions.storages.parameter_server --port 7000`. Averages what functions send.

It stands for CE-scaling's VM-PS. All is in memory, and gone when it ends. Whoever can reach its port can use it: there
are no passwords, so it listens on this machine alone unless `--host` says more.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import socket
import uuid

from mlcd.planners.functions.storages.rounds import Over, Refused, Round, Rounds
from mlcd.planners.functions.storages.wire import Header, read, write

MEMORY_MB = 2_048
LONGEST_WAIT_S = 5.0
"""After so long an answer says who is missing, and the client asks again: no connection is silent for longer."""
BUFFER = 1 << 22


class ParameterServer:
    """Answers questions about rounds. `life` tells one start of the server from another."""

    def __init__(self, rounds: Rounds) -> None:
        self.rounds = rounds
        self.life = uuid.uuid4().hex

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one client, until it leaves."""
        connection = writer.get_extra_info("socket")
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                question, body = await read(reader)
                kind, answer, more = await self._answer(question, body)
                write(writer, {"is": kind, "life": self.life, **more}, answer)
                await writer.drain()
        writer.close()

    async def _answer(self, question: Header, body: bytes) -> tuple[str, bytes, Header]:
        if question.get("life") not in (None, self.life):
            return "restarted", b"", {}
        try:
            match question.get("do"):
                case "push":
                    where = question["group"], int(question["step"])
                    rank, functions = int(question["rank"]), int(question["functions"])
                    return await self._mean(self.rounds.push(*where, rank, functions, body), question)
                case "pull":
                    return await self._mean(self.rounds.find(question["group"], int(question["step"])), question)
                case "put":
                    self.rounds.put(question["key"], body)
                case "get":
                    found = self.rounds.blobs.get(question["key"])
                    return ("nothing", b"", {}) if found is None else ("value", found, {})
                case "delete":
                    self.rounds.delete(question["keys"])
                case "clear":
                    self.rounds.clear(question["prefix"])
                case other:
                    raise Refused(f"it cannot do {other!r}")
        except Over as error:
            return "over", b"", {"why": str(error)}
        except Refused as error:
            return "refused", b"", {"why": str(error)}
        except (KeyError, TypeError, ValueError) as error:
            return "refused", b"", {"why": f"a question that makes no sense: {error!r}"}
        return "done", b"", {}

    async def _mean(self, found: Round, question: Header) -> tuple[str, bytes, Header]:
        """The mean, once all have come; or who has not."""
        wait_s = min(float(question.get("wait_s", 0.0)), LONGEST_WAIT_S)
        if found.mean is None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(found.complete.wait(), wait_s)
        if found.mean is None:
            return "waiting", b"", {"missing": found.missing}
        return "mean", found.mean, {}


async def listen(host: str, port: int, memory_mb: float) -> None:
    """Serve until SIGTERM or Ctrl-C; says `ready: tcp://HOST:PORT` once it does."""
    answering = ParameterServer(Rounds(int(memory_mb * 1e6)))
    server = await asyncio.start_server(answering.serve, host, port, limit=BUFFER, backlog=4_096)
    enough = asyncio.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(each, enough.set)
    print(f"ready: tcp://{host}:{server.sockets[0].getsockname()[1]}", flush=True)
    await enough.wait()
    server.close()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m mlcd.planners.functions.storages.parameter_server", description=__doc__
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this machine alone)")
    parser.add_argument("--port", type=int, default=0, help="0 for any that is free")
    parser.add_argument("--memory-mb", type=float, default=MEMORY_MB, help=f"what it may hold (default: {MEMORY_MB})")
    given = parser.parse_args()
    try:
        asyncio.run(listen(given.host, given.port, given.memory_mb))
    except OSError as error:
        parser.exit(2, f"cannot listen on {given.host}:{given.port}: {error.strerror or error}\n")


if __name__ == "__main__":
    main()
