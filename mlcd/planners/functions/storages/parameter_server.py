"""Our parameter server: it averages what functions send to it.

It implements CE-scaling's VM-PS. All data are in memory, and lost when it ends. It has no passwords, so it listens only
on this machine unless `--host` is given.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import socket
import uuid

from mlcd.planners.functions.storages.rounds import Refused, Round, Rounds, StepOver
from mlcd.planners.functions.storages.wire import Header, read, write

MEMORY_MB = 2_048
LONGEST_WAIT_S = 5.0
"""Long-polling timeout: after it the reply lists the missing ranks, and the client asks again."""
BUFFER = 1 << 22


class ParameterServer:
    """Answers requests. `life`: an id of this start of the server, to detect restarts."""

    def __init__(self, rounds: Rounds) -> None:
        self.rounds = rounds
        self.life = uuid.uuid4().hex

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one client until it disconnects."""
        connection = writer.get_extra_info("socket")
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                request, body = await read(reader)
                kind, answer, more = await self._answer(request, body)
                write(writer, {"is": kind, "life": self.life, **more}, answer)
                await writer.drain()
        writer.close()

    async def _answer(self, request: Header, body: bytes) -> tuple[str, bytes, Header]:
        if request.get("life") not in (None, self.life):
            return "restarted", b"", {}
        try:
            match request.get("do"):
                case "push":
                    where = request["group"], int(request["step"])
                    rank, functions = int(request["rank"]), int(request["functions"])
                    return await self._mean(self.rounds.push(*where, rank, functions, body), request)
                case "pull":
                    return await self._mean(self.rounds.find(request["group"], int(request["step"])), request)
                case "put":
                    self.rounds.put(request["key"], body)
                case "get":
                    value = self.rounds.blobs.get(request["key"])
                    return ("nothing", b"", {}) if value is None else ("value", value, {})
                case "delete":
                    self.rounds.delete(request["keys"])
                case "clear":
                    self.rounds.clear(request["prefix"])
                case other:
                    raise Refused(f"it cannot do {other!r}")
        except StepOver as error:
            return "over", b"", {"why": str(error)}
        except Refused as error:
            return "refused", b"", {"why": str(error)}
        except (KeyError, TypeError, ValueError) as error:
            return "refused", b"", {"why": f"a malformed request: {error!r}"}
        return "done", b"", {}

    async def _mean(self, round: Round, request: Header) -> tuple[str, bytes, Header]:
        """The mean if all ranks have sent; otherwise the missing ranks."""
        wait_s = min(float(request.get("wait_s", 0.0)), LONGEST_WAIT_S)
        if round.mean is None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(round.complete.wait(), wait_s)
        if round.mean is None:
            return "waiting", b"", {"missing": round.missing}
        return "mean", round.mean, {}


async def listen(host: str, port: int, memory_mb: float) -> None:
    """Serve until SIGTERM or Ctrl-C; prints `ready: tcp://HOST:PORT` when it is ready."""
    handler = ParameterServer(Rounds(int(memory_mb * 1e6)))
    server = await asyncio.start_server(handler.serve, host, port, limit=BUFFER, backlog=4_096)
    stop = asyncio.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(each, stop.set)
    print(f"ready: tcp://{host}:{server.sockets[0].getsockname()[1]}", flush=True)
    await stop.wait()
    server.close()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m mlcd.planners.functions.storages.parameter_server", description=__doc__
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this machine alone)")
    parser.add_argument("--port", type=int, default=0, help="0 for any that is free")
    parser.add_argument("--memory-mb", type=float, default=MEMORY_MB, help=f"what it may hold (default: {MEMORY_MB})")
    arguments = parser.parse_args()
    try:
        asyncio.run(listen(arguments.host, arguments.port, arguments.memory_mb))
    except OSError as error:
        parser.exit(2, f"cannot listen on {arguments.host}:{arguments.port}: {error.strerror or error}\n")


if __name__ == "__main__":
    main()
