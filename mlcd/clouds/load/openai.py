"""A load-test client for OpenAI-compatible servers: vLLM, SGLang, TensorRT-LLM, llama.cpp and others.

Answers are streamed. Times count from when the request is sent: time to the first chunk with content (TTFT), gaps
between chunks (ITL), and the end.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from mlcd.clouds.load.generate import MakeTarget, RequestFailed
from mlcd.clouds.load.http import Answer, Request, ask_once
from mlcd.clouds.load.prompts import (
    FEWEST_TOKENS,
    CountedWords,
    Lengths,
    PromptRequest,
    PromptWriter,
    TokenIds,
    Words,
    from_file,
    lengths_of,
    local_tokenizer,
    random_requests,
)
from mlcd.clouds.load.sse import EventConnection
from mlcd.clouds.load.stream_chunks import StreamChunks, error_text
from mlcd.core.errors import BackendError, UserError
from mlcd.planners.serve.llm.nouns import Prompts, Stream

KEY_VARIABLE = "MLCD_ENDPOINT_KEY"
"""The environment variable with the API key of an endpoint, if it requires one."""
REFUSED_FIELDS = (400, 422)
"""HTTP statuses with which servers refuse an unknown field of a request."""
FULL_LENGTH = {"ignore_eos": True}
"""Makes answers as long as requested, on servers that support it: vLLM, SGLang, llama.cpp, TensorRT-LLM."""
CALIBRATION = (16, 144)
"""Words in the two prompts that calibrate the number of tokens per word."""


@dataclass(frozen=True)
class OpenAi:
    """One model of a server. `model`: empty if the server has only one. `key_variable`: see KEY_VARIABLE.

    `timeout_s`: of requests for health and models. `stall_s`: the longest silence while an answer is streamed.
    """

    url: str
    model: str = ""
    chat: bool = True
    key_variable: str = KEY_VARIABLE
    timeout_s: float = 5.0
    stall_s: float = 60.0

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        try:
            valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:  # the port is not a number
            valid = False
        if not valid:
            raise UserError(f"'{self.url}': expected the address of a server, such as http://localhost:8000")
        object.__setattr__(self, "url", self.url.rstrip("/").removesuffix("/v1"))

    def is_ready(self) -> bool:
        """Whether the server reports that it is healthy; without /health, whether it lists its models."""
        try:
            status = self._get("/health").status
            return 200 <= (self._get("/v1/models").status if status == 404 else status) < 300
        except BackendError:
            return False

    def models(self) -> tuple[str, ...]:
        """The models of the server. BackendError if it does not answer correctly."""
        answer = self._get("/v1/models")
        if not 200 <= answer.status < 300:
            raise BackendError(f"{self.url}/v1/models: {self._refusal(answer)}")
        try:
            return tuple(str(each["id"]) for each in json.loads(answer.body)["data"])
        except (ValueError, KeyError, TypeError):
            raise BackendError(
                f"{self.url}/v1/models: the answer is not a list of models: expected OpenAI's API"
            ) from None

    def targets(self, prompts: Prompts, seed: int = 0, vocab: int = 0, trace: Lengths | None = None) -> MakeTarget:
        """A function that makes connections, for `generate`. Each request uses the next prompt.

        `vocab`: size of the vocabulary, 0 if unknown. `trace`: lengths in place of those of `prompts`. A few short
        requests first find out what the server accepts. BackendError if it does not answer them correctly.
        """
        tokens_of = local_tokenizer(prompts.tokenizer) if prompts.tokenizer else None
        template = self._accepted_template()
        if prompts.file:
            requests = from_file(prompts)
        else:
            write = self._prompt_writer(template, tokens_of, vocab)
            requests = random_requests(write, trace or lengths_of(prompts, seed), prompts.shared_prefix, seed)
        return lambda: StreamTarget(template, requests)

    def _accepted_template(self) -> RequestTemplate:
        """The request template with the optional fields that the server accepts."""
        model = self.model or self._only_model()
        for options in (FULL_LENGTH, {}):
            template = RequestTemplate(self, model, options)
            try:
                self._one(template, PromptRequest("Hello", 1))
            except _Refused as error:
                if error.status not in REFUSED_FIELDS or not options:
                    raise BackendError(f"{self.url}: {error}{self._models_if_unknown(error, model)}") from None
            else:
                break
        return template

    def _prompt_writer(
        self, template: RequestTemplate, tokens_of: Callable[[str], int] | None, vocab: int
    ) -> PromptWriter:
        """A writer of prompts with a given number of tokens: as token ids if the server accepts them, else as words."""
        if not self.chat:
            ids = TokenIds(vocab or FEWEST_TOKENS)
            try:
                self._one(template, PromptRequest(ids(4, 0, 0), 1))
            except _Refused as error:
                if error.status not in REFUSED_FIELDS:
                    raise BackendError(f"{self.url}: {error}") from None
            else:
                return ids
        counted = [
            self._one(template, PromptRequest(Words().text(words, 0, words), 1)).input_tokens for words in CALIBRATION
        ]
        try:
            words = Words().calibrated(CALIBRATION, counted)
        except ValueError as error:
            raise BackendError(f"{self.url}: {error}") from None
        return words if tokens_of is None else CountedWords(words, tokens_of)

    def _one(self, template: RequestTemplate, ask: PromptRequest) -> Stream:
        """The answer to one request. BackendError, or _Refused if it was refused."""

        async def main() -> Stream:
            target = StreamTarget(template, iter([ask]))
            try:
                return await target.send()
            finally:
                await target.close()

        try:
            return asyncio.run(main())
        except _Refused:
            raise
        except RequestFailed as error:
            raise BackendError(f"{self.url}: {error}") from None

    def _only_model(self) -> str:
        models = self.models()
        if len(models) != 1:
            raise UserError(f"{self.url}: name one of its models: {', '.join(models) or 'it has none'}")
        return models[0]

    def _models_if_unknown(self, error: _Refused, model: str) -> str:
        if error.status != 404:
            return ""
        try:
            return f"; check that '{model}' is one of its models: {', '.join(self.models()) or 'none'}"
        except BackendError:
            return ""

    @property
    def _headers(self) -> dict[str, str]:
        key = os.environ.get(self.key_variable, "")
        return {"Authorization": f"Bearer {key}"} if key else {}

    def _refusal(self, answer: Answer) -> str:
        """The reason why a server refused a request, in one line."""
        text = " ".join(error_text(answer.body).split())[:200]
        match answer.status:
            case 401 | 403:
                has_key = "Authorization" in self._headers
                why = f"the API key in {self.key_variable} is refused" if has_key else "it requires an API key"
                return f"HTTP {answer.status}: {why}" + ("" if has_key else f": set {self.key_variable}")
            case 429:
                return "HTTP 429: too many requests" + (f": {text}" if text else "")
            case _:
                return f"HTTP {answer.status}" + (f": {text}" if text else "")

    def _get(self, path: str) -> Answer:
        return ask_once(self.url, Request(f"{self.url}{path}", headers=self._headers), self.timeout_s)


class _Refused(RequestFailed):
    """The server refused a request with this status."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


@dataclass
class RequestTemplate:
    """Builds the requests to a server, shared by all connections. `options`: optional fields that it accepts."""

    server: OpenAi
    model: str
    options: Mapping[str, object]
    in_flight: int = 0
    request: Request = field(init=False)

    def __post_init__(self) -> None:
        path = "/v1/chat/completions" if self.server.chat else "/v1/completions"
        headers = {"Content-Type": "application/json", "Accept": "text/event-stream", **self.server._headers}
        self.request = Request(self.server.url + path, b"{}", headers)

    def wire(self, ask: PromptRequest) -> bytes:
        """The bytes of a request."""
        body = {
            "model": self.model,
            **ask.as_chat_or_text(self.server.chat),
            "max_tokens": ask.output_tokens,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
            **self.options,
        }
        if self.options:
            body["min_tokens"] = ask.output_tokens
        return self.request.with_body(json.dumps(body).encode())


@dataclass
class StreamTarget:
    """A connection that sends requests one at a time and reads their streamed answers."""

    template: RequestTemplate
    requests: Iterator[PromptRequest]
    connection: EventConnection = field(init=False)

    def __post_init__(self) -> None:
        host, port, secure = self.template.request.endpoint
        self.connection = EventConnection(host, port, secure, self.template.server.stall_s)

    async def send(self) -> Stream:
        """Send the next request; raise unless its answer is complete and its token count agrees with its chunks."""
        sent_s = asyncio.get_running_loop().time()
        ask = next(self.requests)
        chunks = self.chunks()
        self.template.in_flight += 1
        try:
            answer = await self.connection.ask(self.template.wire(ask), chunks.on_event)
            if not 200 <= answer.status < 300:
                at_once = f" ({self.template.in_flight} at once)" if answer.status == 429 else ""
                raise _Refused(answer.status, self.template.server._refusal(answer) + at_once)
        finally:
            self.template.in_flight -= 1
        return chunks.stream(sent_s, ask.output_tokens)

    def chunks(self) -> StreamChunks:
        """The collector for the chunks of the next answer."""
        return StreamChunks()

    async def close(self) -> None:
        """Close the connection."""
        await self.connection.close()
