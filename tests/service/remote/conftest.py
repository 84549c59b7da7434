"""A small server that speaks the API as the service does, and misbehaves when it is told to."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest

from mlcd.core.ledger import Line
from mlcd.core.ledger.entries import to_json
from mlcd.core.version import VERSION


@dataclass
class Asked:
    """A request as it came."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


@dataclass
class Spoken:
    """An answer that is given in place of the usual one."""

    status: int
    body: bytes | dict[str, Any] = b""
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class FakeService:
    """Runs to be read and watched. `cuts`: after how many events each stream is cut; the last one is whole."""

    lines: dict[str, list[Line]] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    instead: dict[str, Spoken | list[Spoken]] = field(default_factory=dict)
    cuts: list[int] = field(default_factory=list)
    statuses: dict[str, str] = field(default_factory=dict)
    version: str = VERSION
    url: str = ""

    def answer(self, asked: Asked) -> Spoken:
        """What is said to a request."""
        path = asked.path.removeprefix("/api/v1")
        told = self.instead.get(path)
        if told:
            return told.pop(0) if isinstance(told, list) else told
        match path.strip("/").split("/"):
            case ["health"]:
                return Spoken(200, {"ok": True, "version": self.version, "mode": "service"})
            case ["me"]:
                return Spoken(200, {"name": "ada", "role": "runner", "team": None, "left_usd": 12.0})
            case ["runs"] if asked.method == "GET":
                first, many = int(asked.query["offset"]), int(asked.query["limit"])
                listed = [self._summary(run) for run in reversed(self.lines)][first : first + many]
                return Spoken(200, {"runs": listed, "total": len(self.lines), "spent_usd": 0.0})
            case ["runs", run] if run in self.lines:
                return Spoken(200, {"summary": self._summary(run)})
            case ["runs", run, "entries"] if run in self.lines:
                after, many = int(asked.query["after"]), int(asked.query["limit"])
                found = [_document(line) for line in self.lines[run] if line.seq > after][:many]
                return Spoken(200, {"run": run, "entries": found, "driven": False})
            case ["runs", run, *_]:
                return Spoken(404, {"error": f"unknown run '{run}': there is none yet"})
            case _:
                return Spoken(404, {"error": "not found"})

    def _summary(self, run: str) -> dict[str, Any]:
        lines = self.lines[run]
        job = lines[0].entry.job.name if lines else ""  # type: ignore[union-attr]
        return {
            "run": run,
            "job": job,
            "status": self.statuses.get(run, "finished" if lines else "queued"),
            "started_at": lines[0].written_at.isoformat() if lines else "2026-01-01",
            "owner": "ada",
            "team": None,
            "because": "no such method",
        }

    def stream(self, run: str, after: int) -> Iterator[bytes]:
        """The events of a run after this one; whole, or cut in the middle of one."""
        cut = self.cuts.pop(0) if self.cuts else None
        yield b": hello\n\n"
        for number, line in enumerate(line for line in self.lines[run] if line.seq > after):
            event = f"id: {line.seq}\nevent: entry\ndata: {{}}\n\n".encode()
            if number == cut:
                yield event[: len(event) // 2]
                return
            yield event
        yield b"event: end\ndata: {}\n\n"


def _document(line: Line) -> dict[str, Any]:
    said = {"seq": line.seq, "run": line.run, "written_at": line.written_at.isoformat(), "elapsed_s": line.elapsed_s}
    return {**said, "entry": json.loads(to_json(line.entry))}


def _handler(service: FakeService) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing."""

        def do_GET(self) -> None:
            self._serve()

        def do_POST(self) -> None:
            self._serve()

        def _serve(self) -> None:
            parts = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked = Asked(self.command, unquote(parts.path), dict(parse_qsl(parts.query)), headers, body)
            service.asked.append(asked)
            steps = asked.path.removeprefix("/api/v1/runs/").split("/")
            if steps[1:] == ["events"] and steps[0] in service.lines and "/runs/x/events" not in service.instead:
                self._send_events(steps[0], int(headers.get("last-event-id", "0")))
                return
            said = service.answer(asked)
            content = said.body if isinstance(said.body, bytes) else json.dumps(said.body).encode()
            self.send_response(said.status)
            kind = "text/html" if isinstance(said.body, bytes) else "application/json"
            for name, value in {"Content-Type": kind, "Content-Length": str(len(content)), **said.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def _send_events(self, run: str, after: int) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            whole = False
            for piece in service.stream(run, after):
                self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
                whole = b"event: end" in piece
            if whole:
                self.wfile.write(b"0\r\n\r\n")
            self.close_connection = True

    return Handler


Serve = Callable[..., FakeService]


@pytest.fixture
def service() -> Iterator[FakeService]:
    """A server on a free port of loopback."""
    fake = FakeService()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(fake))
    server.daemon_threads = True
    fake.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield fake
    server.shutdown()
    thread.join()
    server.server_close()
