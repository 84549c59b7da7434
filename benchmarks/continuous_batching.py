"""An OpenAI-compatible server over the continuous batching of transformers, for a Llama with random weights.

    python benchmarks/continuous_batching.py FOLDER --port 8000 --eager compiled --batched-tokens 1024 --sequences 64

FOLDER has a config.json and a tokenizer.json. The weights are drawn on the GPU, else on the CPU. It
streams /v1/completions and /v1/chat/completions with greedy decoding, always to the requested number of
tokens. It answers /health once the model is loaded and has answered `--warm` simultaneous requests, as servers do that
capture CUDA graphs first. It ends when its engine does.

`transformers serve` is not used: it loads weights from a folder, stops at an end token, and has no option for most of
what varies here. Written against transformers 5.17.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
import traceback
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, cast

import torch
from tokenizers import Tokenizer
from transformers import AutoConfig, AutoModelForCausalLM, ContinuousBatchingConfig, GenerationConfig

DTYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}
BLOCK = 256
"""Tokens in a block of the key-value cache."""
PADDED_KV, PADDED_QUERIES = 4_096, 64
"""With CUDA graphs, sizes are rounded up to multiples of these: each pair of sizes has its own graph."""
WARM_TOKENS = (128, 4)
"""Input and output tokens of a warm-up request."""
WARM_TIMEOUT_S = 120.0
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
LAST = b"0\r\n\r\n"


@dataclass
class Engine:
    """A model whose manager answers requests in its own thread."""

    manager: Any
    tokenizer: Any
    name: str
    numbers: Any = field(default_factory=count)

    @property
    def works(self) -> bool:
        return self.manager.is_running() and self.manager.background_thread_status.can_accept_new_requests() is None

    def ids(self, prompt: object) -> list[int]:
        """The tokens of a prompt: a text, token ids, or the messages of a chat."""
        if isinstance(prompt, list) and all(isinstance(each, int) for each in prompt):
            return prompt
        if isinstance(prompt, list):
            prompt = "\n".join(str(message["content"]) for message in prompt)
        return list(self.tokenizer.encode(str(prompt)).ids) or [0]

    def text(self, token: int) -> str:
        """The text of tokens; those that are no words in the load test's vocabulary are written as numbers."""
        return f" {self.tokenizer.id_to_token(token) or token}"

    def warm_up(self, steps: list[int], vocab: int) -> None:
        """Answer so many simultaneous requests; RuntimeError if that fails."""
        before, (tokens, new) = time.monotonic(), WARM_TOKENS
        for step in steps:
            inputs = [[3 + (i * 7_919 + at * 104_729) % (vocab - 3) for at in range(tokens)] for i in range(step)]
            left = len(self.manager.add_requests(inputs, max_new_tokens=new))
            while left:
                result = self.manager.get_result(timeout=1.0)
                if result is not None and result.error:
                    raise RuntimeError(f"warm-up: {result.error}")
                left -= result is not None and result.is_finished()
                if not self.works or time.monotonic() - before > WARM_TIMEOUT_S:
                    raise RuntimeError(f"warm-up: {step} requests at once were not answered")


class Connection(asyncio.Protocol):
    """Reads one request after the other, and streams the tokens of an answer as the engine produces them."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.read, self.request_id = engine, b"", ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def connection_lost(self, error: Exception | None) -> None:
        if self.request_id:  # nobody reads on: its place is for others
            self.engine.manager.cancel_request(self.request_id)
            self.request_id = ""

    def data_received(self, data: bytes) -> None:
        self.read += data
        while (end := self.read.find(b"\r\n\r\n")) >= 0:
            lines = self.read[:end].decode("latin-1").split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
            size = end + 4 + int(headers.get("content-length", 0))
            if len(self.read) < size:
                return
            body, self.read = self.read[end + 4 : size], self.read[size:]
            method, path, _ = lines[0].split(" ")
            self.answer(f"{method} {path}", body)

    def answer(self, what: str, body: bytes) -> None:
        match what:
            case "GET /health":
                self.document({"status": "ok" if self.engine.works else "failed"}, 200 if self.engine.works else 503)
            case "GET /v1/models":
                self.document({"object": "list", "data": [{"id": self.engine.name, "object": "model"}]})
            case "POST /v1/completions" | "POST /v1/chat/completions":
                try:
                    self.complete(json.loads(body), chat="chat" in what)
                except (ValueError, KeyError, TypeError) as error:
                    self.document({"error": {"message": f"not a request: {error!r}"}}, 400)
            case _:
                self.document({"error": {"message": f"no such address: {what}"}}, 404)

    def complete(self, asked: dict[str, Any], chat: bool) -> None:
        """Pass a request to the engine."""
        if not asked.get("stream"):
            raise ValueError("only streams are answered")
        ids, most = self.engine.ids(asked["messages" if chat else "prompt"]), int(asked["max_tokens"])
        request_id = self.request_id = f"r{next(self.engine.numbers)}"
        written = 0
        kind, where = ("chat.completion.chunk", "delta") if chat else ("text_completion", "text")

        def event(choices: list[dict[str, Any]], **more: object) -> bytes:
            piece = {"id": request_id, "object": kind, "model": self.engine.name, "choices": choices, **more}
            return _chunk(b"data: " + json.dumps(piece).encode() + b"\n\n")

        def choice(text: str, finish: str | None = None) -> list[dict[str, Any]]:
            return [{"index": 0, where: {"content": text} if chat else text, "finish_reason": finish}]

        def on_output(output: Any) -> None:
            nonlocal written
            if self.request_id != request_id:  # the connection was lost
                return
            data = b"" if written else HEAD
            if output.error:
                self.request_id = ""
                error = json.dumps({"error": {"message": str(output.error)}}).encode()
                self.transport.write(data + _chunk(b"data: " + error + b"\n\n") + LAST)
                return
            new, written = output.generated_tokens[written:], len(output.generated_tokens)
            data += b"".join(event(choice(self.engine.text(token))) for token in new)
            if output.is_finished():
                self.request_id = ""
                usage = {"prompt_tokens": len(ids), "completion_tokens": written, "total_tokens": len(ids) + written}
                data += event(choice("", "length")) + event([], usage=usage) + _chunk(b"data: [DONE]\n\n") + LAST
            self.transport.write(data)

        self.engine.manager.register_result_handler(request_id, on_output)
        if self.engine.manager.add_request(ids, request_id, most, streaming=True) is None:
            self.request_id = ""
            self.document({"error": {"message": "the engine has ended"}}, 503)

    def document(self, document: dict[str, Any], status: int = 200) -> None:
        body = json.dumps(document).encode()
        head = f"HTTP/1.1 {status} -\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        self.transport.write(head.encode() + body)


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def engine_of(given: argparse.Namespace, device: str) -> Engine:
    """The model with random weights, and its running manager."""
    torch.manual_seed(0)
    config = AutoConfig.from_pretrained(given.folder)
    with torch.device(device):
        model = AutoModelForCausalLM.from_config(
            config, dtype=DTYPES[given.precision], attn_implementation=f"paged|{given.attention}"
        ).eval()
    graphs = given.eager == "compiled"
    batching = ContinuousBatchingConfig(
        block_size=BLOCK,
        num_blocks=given.kv_tokens // BLOCK,
        max_batch_tokens=given.batched_tokens,
        max_requests_per_batch=given.sequences,
        scheduler_type=given.scheduler,
        use_cuda_graph=graphs,
        use_async_batching=given.batching == "async",
        q_padding_interval_size=PADDED_QUERIES if graphs else 0,
        kv_padding_interval_size=PADDED_KV if graphs else 0,
        allow_block_sharing=False,  # no prompt of a load test is like another
        max_blocks_per_request=0,  # the way for flash attention alone
        seed=0,
    )
    greedy = GenerationConfig(do_sample=False, eos_token_id=-1, pad_token_id=0, max_new_tokens=1)
    manager = model.init_continuous_batching(greedy, batching)
    manager.warmup()
    manager.start()
    return Engine(manager, Tokenizer.from_file(str(given.folder / "tokenizer.json")), given.folder.name)


async def serve(engine: Engine, host: str, port: int) -> None:
    """Serve until the engine ends."""
    loop = asyncio.get_running_loop()
    async with await loop.create_server(lambda: Connection(engine), host, port, backlog=1_024):
        while engine.works:
            await asyncio.sleep(0.2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8_000)
    parser.add_argument("--attention", choices=("sdpa", "eager"), default="sdpa")
    parser.add_argument("--precision", choices=DTYPES, default="bf16")
    parser.add_argument("--eager", choices=("eager", "compiled"), default="eager", help="compiled: with CUDA graphs")
    parser.add_argument("--batching", choices=("sync", "async"), default="sync", help="async wants a GPU")
    parser.add_argument("--scheduler", choices=("fifo", "prefill_first"), default="fifo")
    parser.add_argument("--batched-tokens", type=int, default=1_024, help="of one step")
    parser.add_argument("--sequences", type=int, default=64, help="of one step")
    parser.add_argument("--kv-tokens", type=int, default=24_576, help="that the cache has room for")
    parser.add_argument("--warm", type=int, nargs="*", default=[1, 8, 32, 64], help="requests at once before the first")
    given, began = parser.parse_args(), time.monotonic()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        engine = engine_of(given, device)
        loaded = time.monotonic()
        engine.warm_up(given.warm, engine.manager.model.config.vocab_size)
        parameters = sum(each.numel() for each in engine.manager.model.parameters()) / 1e9
        took = f"there after {loaded - began:.1f} s, warm after {time.monotonic() - began:.1f} s"
        print(f"{parameters:.3f} billion parameters on {device}: {took}", flush=True)
        asyncio.run(serve(engine, given.host, given.port))
        print("the engine has ended", flush=True)
    except Exception:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(1)  # the engine's thread would keep the process


if __name__ == "__main__":
    main()
