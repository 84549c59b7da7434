"""Our parameter server: it averages what functions send to it.

It implements CE-scaling's VM-PS. All data are in memory, and lost when it ends. It has no passwords, so it listens only
on this machine unless `--host` is given.

For each group and step it has the vectors of the ranks, and their mean when complete. A vector counts once, however
often it is sent: it is identified by its group, step and rank, and the first one stays. A group is one attempt, so
messages of an older attempt never reach a newer one. Memory is bounded: when a step is complete, its vectors and all
earlier steps are deleted (a rank that sends to a step has read the mean of the one before), and when memory is short,
groups that were not used for `IDLE_S` are evicted.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import socket
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from mlcd.planners.functions.storages.storage import WIRE, mean, to_bytes
from mlcd.planners.functions.storages.vm_ps import Header, message, read

MEMORY_MB = 2_048
LONGEST_WAIT_S = 5.0
"""Long-polling timeout: after it the reply lists the missing ranks, and the client asks again."""
BUFFER = 1 << 22
IDLE_S = 60.0


class Refused(Exception):
    """A request cannot be served; the message says why."""


class StepOver(Exception):
    """The step is over, or unknown."""


@dataclass
class Round:
    """One step of one group."""

    functions: int
    vectors: dict[int, bytes] = field(default_factory=dict)
    mean: bytes | None = None
    complete: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def missing(self) -> tuple[int, ...]:
        """The ranks that have not sent."""
        return () if self.mean is not None else tuple(r for r in range(self.functions) if r not in self.vectors)

    @property
    def bytes(self) -> int:
        """Its size in memory."""
        return len(self.mean or b"") + sum(map(len, self.vectors.values()))


@dataclass
class Group:
    """The steps of one attempt."""

    used_s: float
    rounds: dict[int, Round] = field(default_factory=dict)
    completed: int = -1
    """The last step that is complete."""


class Rounds:
    """All groups, within a limit of bytes, and blobs by key."""

    def __init__(self, most_bytes: int, now: Callable[[], float] = time.monotonic) -> None:
        self.most_bytes, self.now = most_bytes, now
        self.blobs: dict[str, bytes] = {}
        self._groups: dict[str, Group] = {}
        self.held = 0

    def push(self, group: str, step: int, rank: int, functions: int, vector: bytes) -> Round:
        """Add a rank's vector, unless it is known."""
        steps = self._groups.setdefault(group, Group(self.now()))
        steps.used_s = self.now()
        if step not in steps.rounds:
            if step <= steps.completed:
                raise StepOver(f"step {step} of {group} is over")
            steps.rounds[step] = Round(functions)
        round = steps.rounds[step]
        self._check(round, rank, functions, vector)
        if round.mean is None and rank not in round.vectors:
            self._make_room(len(vector), group)
            round.vectors[rank] = vector
            self.held += len(vector)
            if len(round.vectors) == functions:
                self._complete(steps, step)
        return round

    def find(self, group: str, step: int) -> Round:
        """A step that at least one rank has sent to."""
        steps = self._groups.get(group)
        if steps is None or step not in steps.rounds:
            raise StepOver(f"step {step} of {group} is not known here")
        steps.used_s = self.now()
        return steps.rounds[step]

    def put(self, key: str, value: bytes) -> None:
        """Store a blob."""
        self.delete([key])
        self._make_room(len(value))
        self.blobs[key] = value
        self.held += len(value)

    def delete(self, keys: list[str]) -> None:
        """Delete blobs."""
        for key in keys:
            self.held -= len(self.blobs.pop(key, b""))

    def clear(self, prefix: str) -> None:
        """Delete blobs and groups with this prefix; a group matches as `GROUP/`."""
        self.delete([key for key in self.blobs if key.startswith(prefix)])
        for name in [name for name in self._groups if f"{name}/".startswith(prefix)]:
            self._evict(name)

    def _check(self, round: Round, rank: int, functions: int, vector: bytes) -> None:
        if functions != round.functions or not 0 <= rank < functions:
            raise Refused(f"rank {rank} of {functions} functions joined an exchange between {round.functions}")
        expected = len(round.mean) if round.mean is not None else len(next(iter(round.vectors.values()), vector))
        if len(vector) != expected or len(vector) % WIRE.itemsize:
            raise Refused(f"rank {rank} brought {len(vector):,} bytes, others {expected:,}")

    def _complete(self, steps: Group, step: int) -> None:
        done = steps.rounds[step]
        before = sum(each.bytes for each in steps.rounds.values())
        ordered = (np.frombuffer(done.vectors[rank], WIRE) for rank in range(done.functions))
        done.mean = to_bytes(mean(ordered))
        done.vectors.clear()
        steps.completed = step
        steps.rounds = {number: each for number, each in steps.rounds.items() if number >= step}
        self.held += sum(each.bytes for each in steps.rounds.values()) - before
        done.complete.set()

    def _make_room(self, size: int, keep: str | None = None) -> None:
        """Evict idle groups, the longest idle first, until it fits."""
        idle = sorted((each.used_s, name) for name, each in self._groups.items() if name != keep)
        for used_s, name in idle:
            if self.held + size <= self.most_bytes or self.now() - used_s < IDLE_S:
                break
            self._evict(name)
        if self.held + size > self.most_bytes:
            raise Refused(
                f"{size / 1e6:,.1f} MB do not fit beside the {self.held / 1e6:,.1f} MB that the parameter server "
                f"holds, of {self.most_bytes / 1e6:,.0f} MB: start it with a larger --memory-mb"
            )

    def _evict(self, name: str) -> None:
        self.held -= sum(each.bytes for each in self._groups.pop(name).rounds.values())


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
                writer.write(message({"is": kind, "life": self.life, **more}, answer))
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
