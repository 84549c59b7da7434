"""A small OpenAI-compatible server with the timing of a language model that is served with continuous batching.

    python openai_server.py --step-ms 20 --sequence-ms 0.1 --prefill-ms 0.05 --sequences 256 [--bad stall]

A step takes `step_s`, and `sequence_s` more for each sequence that decodes in it, and `prefill_s` for each token of the
prompts that it begins with. At its end every running sequence gets one token. At most `sequences` run at once; the
others wait. It computes nothing, so that thousands of streams need little of a processor.

It prints its port, and ends when its standard input does, so that it never outlives who started it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from math import inf
from random import Random
from typing import Any

BAD = (
    "garbage",  # the body is no event stream
    "not_json",  # its events are not JSON
    "not_http",
    "stall",  # nothing comes after the first tokens
    "close",  # the connection is closed after the first tokens
    "end",  # the answer ends after the first tokens, correctly as HTTP
    "too_many",  # HTTP 429
    "unauthorized",  # HTTP 401, unless the key is 'secret'
    "error",  # an error instead of a piece, after the first tokens
    "no_usage",
    "no_content",
    "few_tokens",  # the usage says fewer tokens than there are pieces
    "many_tokens",  # the usage says more tokens than were asked for
    "no_options",  # refuses fields that OpenAI's own API does not have
    "no_ids",  # refuses token ids
    "plain",  # answers without a stream
)
TOKENS_BEFORE_BAD = 2
TEMPLATE_TOKENS = 5
"""That a chat template adds to a prompt."""


@dataclass(frozen=True)
class Timing:
    """See the top of this file.

    `spread`: if above 0, sequences do not share steps: each has a first token and a step of its own, log-normal around
    `first_s` and `step_s`, and the n-th request has the same ones each time. `stall_at_s`: after the first request; no
    step ends for `stall_s` from then on. `bad`: what it does wrong. `most`: requests at once, any more of which
    get HTTP 429; 0: no limit. `stamps`: whether pieces tell when they were sent.
    """

    step_s: float = 0.01
    first_s: float = 0.1
    sequence_s: float = 0.0
    prefill_s: float = 0.0
    sequences: int = 256
    tokens_per_piece: int = 1
    spread: float = 0.0
    stall_at_s: float = inf
    stall_s: float = 0.0
    bad: str = ""
    most: int = 0
    stamps: bool = False
    model: str = "fake"


@dataclass(eq=False)
class Sequence:
    """One request that is being answered."""

    connection: Connection
    chat: bool
    input_tokens: int
    tokens: int
    made: int = 0


@dataclass
class Engine:
    """Runs steps for as long as there are sequences."""

    timing: Timing
    waiting: deque[Sequence] = field(default_factory=deque)
    running: list[Sequence] = field(default_factory=list)
    stepping: bool = False
    prompt_tokens: int = 0
    generation_tokens: int = 0
    started_s: float | None = None
    alone: int = 0
    connections: set[Connection] = field(default_factory=set)

    def add(self, sequence: Sequence) -> None:
        if self.started_s is None:
            self.started_s = asyncio.get_running_loop().time()
        if self.timing.spread:
            self.begin_alone(sequence)
            return
        self.waiting.append(sequence)
        if not self.stepping:
            self.stepping = True
            self.begin(asyncio.get_running_loop().time())

    def begin(self, now_s: float) -> None:
        """Begin a step. It ends when it should, however late this one was begun: a busy machine adds no drift."""
        timing, decoding, prefill = self.timing, len(self.running), 0
        while self.waiting and len(self.running) < timing.sequences:
            sequence = self.waiting.popleft()
            prefill += sequence.input_tokens
            self.running.append(sequence)
        self.prompt_tokens += prefill
        ends_s = now_s + timing.step_s + timing.sequence_s * decoding + timing.prefill_s * prefill
        stall_at_s = (self.started_s or 0.0) + timing.stall_at_s
        if stall_at_s <= ends_s < stall_at_s + timing.stall_s:
            ends_s = stall_at_s + timing.stall_s
        asyncio.get_running_loop().call_at(ends_s, self.end, ends_s)

    def begin_alone(self, sequence: Sequence) -> None:
        """A sequence with times of its own. One token only is a question about the server, and has no number."""
        draws = Random(self.alone)
        self.alone += sequence.tokens > 1
        first_s, step_s = (
            each * draws.lognormvariate(0, self.timing.spread) for each in (self.timing.first_s, self.timing.step_s)
        )
        loop = asyncio.get_running_loop()

        def token(at_s: float) -> None:
            sequence.made += 1
            self.generation_tokens += 1
            if sequence.connection.token(sequence):
                loop.call_at(at_s + step_s, token, at_s + step_s)

        now_s = loop.time()
        loop.call_at(now_s + first_s, token, now_s + first_s)

    def end(self, ends_s: float) -> None:
        left = []
        for sequence in self.running:
            step = min(self.timing.tokens_per_piece, sequence.tokens - sequence.made)
            sequence.made += step
            self.generation_tokens += step
            if sequence.connection.token(sequence):
                left.append(sequence)
        self.running = left
        if self.running or self.waiting:
            self.begin(ends_s)
        else:
            self.stepping = False

    def metrics(self) -> str:
        """As vLLM tells them."""
        used = sum(each.input_tokens + each.made for each in self.running) / (self.timing.sequences * 2_048)
        labels = f'{{engine="0",model_name="{self.timing.model}"}}'
        values = {
            "vllm:num_requests_running": ("gauge", len(self.running)),
            "vllm:num_requests_waiting": ("gauge", len(self.waiting)),
            "vllm:kv_cache_usage_perc": ("gauge", min(1.0, used)),
            "vllm:num_preemptions_total": ("counter", 0),
            "vllm:prompt_tokens_total": ("counter", self.prompt_tokens),
            "vllm:generation_tokens_total": ("counter", self.generation_tokens),
        }
        lines = [f"# TYPE {name} {kind}\n{name}{labels} {float(value)}\n" for name, (kind, value) in values.items()]
        return "".join(lines)


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"
LAST = b"0\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def event(piece: dict[str, Any]) -> bytes:
    return chunk(b"data: " + json.dumps(piece).encode() + b"\n\n")


def piece(chat: bool, model: str, text: str, finish: str | None = None, **more: Any) -> dict[str, Any]:
    choice: dict[str, Any] = {"index": 0, "logprobs": None, "finish_reason": finish}
    choice |= {"delta": {"content": text}} if chat else {"text": text}
    kind = "chat.completion.chunk" if chat else "text_completion"
    return {"id": "cmpl-0", "object": kind, "created": 0, "model": model, "choices": [choice], **more}


class Connection(asyncio.Protocol):
    """Requests come one by one."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.data, self.gone = engine, b"", False
        timing = engine.timing
        word = b" word" if timing.bad != "no_content" else b""
        self.pieces = {chat: event(piece(chat, timing.model, word.decode())) for chat in (True, False)}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.engine.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.gone = True
        self.engine.connections.discard(self)

    def data_received(self, data: bytes) -> None:
        self.data += data
        head, end, body = self.data.partition(b"\r\n\r\n")
        if not end:
            return
        length = head.lower().partition(b"content-length:")[2].split(b"\r\n")[0].strip()
        if len(body) < int(length or 0):
            return
        self.data = b""
        method, path, _ = head.split(b"\r\n")[0].decode().split(" ")
        key = head.lower().partition(b"authorization: bearer ")[2].split(b"\r\n")[0].decode()
        self.answer(method, path, body, key)

    def answer(self, method: str, path: str, body: bytes, key: str) -> None:
        timing = self.engine.timing
        if timing.bad == "unauthorized" and key != "secret":
            self.document({"error": {"message": "Incorrect API key provided", "code": 401}}, "401 Unauthorized")
        elif path == "/health":
            self.document({})
        elif path == "/v1/models":
            self.document({"object": "list", "data": [{"id": timing.model, "object": "model"}]})
        elif path == "/metrics":
            self.text(self.engine.metrics().encode(), "200 OK", "text/plain; version=0.0.4")
        elif method == "POST" and path in ("/v1/chat/completions", "/v1/completions"):
            self.complete(path == "/v1/chat/completions", json.loads(body))
        else:
            self.document({"detail": "Not Found"}, "404 Not Found")

    def complete(self, chat: bool, asked: dict[str, Any]) -> None:
        timing, bad = self.engine.timing, self.engine.timing.bad
        prompt = asked["messages"][-1]["content"] if chat else asked["prompt"]
        if chat and isinstance(prompt, list):
            prompt = " ".join(part["text"] for part in prompt)
        ids = isinstance(prompt, list)
        if asked["model"] != timing.model:
            message = f"The model `{asked['model']}` does not exist."
            self.document({"error": {"message": message, "type": "NotFoundError", "code": 404}}, "404 Not Found")
        elif (bad == "no_options" and "ignore_eos" in asked) or (bad == "no_ids" and ids):
            self.document({"error": {"message": "unknown field", "code": 400}}, "400 Bad Request")
        elif bad == "too_many" or 0 < timing.most <= len(self.engine.running) + len(self.engine.waiting):
            self.document({"error": {"message": "queue is full", "code": 429}}, "429 Too Many Requests")
        elif bad == "plain":
            self.document(piece(chat, timing.model, "all of it"))
        elif bad == "garbage":
            self.transport.write(HEAD + chunk(b"<html>\n<body>It works!</body>\n</html>\n") + LAST)
        elif bad == "not_json":
            self.transport.write(HEAD + chunk(b"data: {oops\n\n") + LAST)
        elif bad == "not_http":
            self.transport.write(b"SSH-2.0-OpenSSH_9.2p1\r\n\r\n")
        else:
            self.usage = bool((asked.get("stream_options") or {}).get("include_usage")) and bad != "no_usage"
            tokens = len(prompt) if ids else len(prompt.split()) + TEMPLATE_TOKENS * chat
            self.engine.add(
                Sequence(self, chat, tokens, int(asked.get("max_tokens") or asked["max_completion_tokens"]))
            )

    def token(self, sequence: Sequence) -> bool:
        """Send one more piece; return whether there are more to come."""
        timing, chat, bad = self.engine.timing, sequence.chat, self.engine.timing.bad
        if self.gone:
            return False
        first = sequence.made <= timing.tokens_per_piece
        data = self.pieces[chat]
        if timing.stamps:
            data = event(piece(chat, timing.model, " word", sent_s=asyncio.get_running_loop().time()))
        if first:
            role = piece(True, timing.model, "")
            role["choices"][0]["delta"]["role"] = "assistant"
            data = HEAD + (event(role) if chat else b"") + data
        if bad in ("stall", "close", "end", "error") and sequence.made >= TOKENS_BEFORE_BAD:
            self.transport.write(data + self.break_off(bad))
            if bad == "close":
                self.transport.close()
            return False
        if sequence.made < sequence.tokens:
            self.transport.write(data)
            return True
        self.transport.write(data + self.ending(sequence))
        return False

    def break_off(self, bad: str) -> bytes:
        error = {"error": {"message": "out of memory", "type": "InternalServerError", "code": 500}}
        return {"error": event(error) + LAST, "end": LAST}.get(bad, b"")

    def ending(self, sequence: Sequence) -> bytes:
        timing = self.engine.timing
        made = {"few_tokens": 1, "many_tokens": 10_000}.get(timing.bad, sequence.made)
        counts = {"prompt_tokens": sequence.input_tokens, "completion_tokens": made}
        usage = piece(sequence.chat, timing.model, "", usage={**counts, "total_tokens": sum(counts.values())})
        usage["choices"] = []
        last = event(piece(sequence.chat, timing.model, "", "length"))
        return last + (event(usage) if self.usage else b"") + chunk(b"data: [DONE]\n\n") + LAST

    def document(self, document: dict[str, Any], status: str = "200 OK") -> None:
        self.text(json.dumps(document).encode(), status, "application/json")

    def text(self, body: bytes, status: str, kind: str) -> None:
        head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
        self.transport.write(head.encode() + body)


async def serve(engine: Engine) -> asyncio.Server:
    """A server on a free port."""
    loop = asyncio.get_running_loop()
    return await loop.create_server(lambda: Connection(engine), "127.0.0.1", 0, backlog=4_096)


def _url(server: asyncio.Server) -> str:
    return f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@contextmanager
def in_thread(timing: Timing) -> Iterator[str]:
    """Its address, for as long as it is needed; it runs in a thread of this process.

    On asyncio's own loop, whichever somebody else, such as SkyPilot, has made the default of this process.
    """
    loop, engine = asyncio.SelectorEventLoop(), Engine(timing)
    thread = threading.Thread(target=loop.run_forever, name="openai_server", daemon=True)
    thread.start()
    server = asyncio.run_coroutine_threadsafe(serve(engine), loop).result()
    try:
        yield _url(server)
    finally:
        asyncio.run_coroutine_threadsafe(_stop(server, engine), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _stop(server: asyncio.Server, engine: Engine) -> None:
    await closed(server)
    for connection in engine.connections:
        connection.transport.abort()
    await asyncio.sleep(0)  # they are closed after what is being done now


async def closed(server: asyncio.Server) -> None:
    """What was accepted has been answered, and nothing is accepted any more.

    In this order: asyncio leaves a connection open that it is just accepting when its server is closed.
    """
    while answering := asyncio.all_tasks() - {asyncio.current_task()}:
        await asyncio.wait(answering)
    server.close()
    await asyncio.sleep(0)  # connections are closed after what is being done now


@contextmanager
def in_process(timing: Timing, *before: str) -> Iterator[str]:
    """Its address, for as long as it is needed; it runs in a process of its own. `before`: a command, as taskset."""
    options = [f"--{name.replace('_', '-')}={value}" for name, value in asdict(timing).items()]
    command = [*before, sys.executable, __file__, *options]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        yield process.stdout.readline().strip()
        process.stdin.close()


async def main(timing: Timing) -> None:
    async with await serve(Engine(timing)) as server:
        print(_url(server), flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    for each in fields(Timing):
        kind = type(each.default)
        read = (lambda text: text == "True") if kind is bool else kind
        parser.add_argument(f"--{each.name.replace('_', '-')}", type=read, default=each.default)
    asyncio.run(main(Timing(**vars(parser.parse_args()))))
