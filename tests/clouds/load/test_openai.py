"""Streams of a server with known timing are measured correctly, and every error of a bad server gives one line."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing
from functools import partial
from itertools import islice

import pytest
from mlcd_fixtures.openai_server import TEMPLATE_TOKENS, Connection, Engine, Timing, in_process, in_thread
from virtual_loop import MemoryLoop
from virtual_loop import loaded as virtually_loaded

from mlcd.clouds.load.generate import Arrivals, Closed, Open, Replay, Report, RequestFailed, generate
from mlcd.clouds.load.openai import KEY_VARIABLE, OpenAi, RequestTemplate, StreamTarget
from mlcd.clouds.load.prompts import PromptRequest, TokenIds, Words, lengths_of, random_requests
from mlcd.clouds.load.stream_chunks import StreamChunks
from mlcd.core.errors import BackendError, UserError
from mlcd.planners.serve.llm.levels import level_of
from mlcd.planners.serve.llm.nouns import Prompts, Stream
from mlcd.planners.serve.nouns import Figure

pytestmark = pytest.mark.live
SHORT = Prompts(input_tokens=20, output_tokens=8)


def virtual(timing: Timing, arrivals: Arrivals, prompts: Prompts, seconds: float) -> list[Report]:
    """The reports of a load on a server in memory, in virtual time."""
    engine = Engine(timing)
    template = RequestTemplate(OpenAi("http://fake", "fake", prompts.chat), "fake", {})
    write = Words(added=TEMPLATE_TOKENS) if prompts.chat else TokenIds()
    requests = random_requests(write, lengths_of(prompts))
    loop = partial(MemoryLoop, lambda: Connection(engine))
    return virtually_loaded(lambda: StreamTarget(template, requests), arrivals, seconds, timeout_s=60.0, loop=loop)


def loaded(
    url: str, arrivals: Arrivals, prompts: Prompts = SHORT, until: Callable[[Report], bool] = bool
) -> list[Report]:
    """The reports of a load on a real server, up to the first that is enough."""
    reports = []
    make = OpenAi(url, chat=prompts.chat).targets(prompts)
    with closing(generate(make, arrivals, every_s=0.05)) as load:
        for report in load:
            reports.append(report)
            if until(report):
                break
    return reports


def answers(least: int) -> Callable[[Report], bool]:
    return lambda report: report.answered >= least


def streams(reports: list[Report]) -> list[Stream]:
    return [stream for report in reports for stream in report.window.streams]


def failing(bad: str) -> str:
    """Why the first request to a bad server fails."""
    with in_thread(Timing(step_s=0.002, bad=bad)) as url, pytest.raises(BackendError) as error:
        next(generate(OpenAi(url, "fake", stall_s=0.1).targets(SHORT), Closed(2), warm_up=2))
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("chat", [True, False])
def test_the_times_of_a_stream_are_those_of_the_server(chat: bool) -> None:
    """20 tokens of prompt at 1 ms, and 5 ms for each step."""
    seen = streams(virtual(Timing(step_s=0.005, prefill_s=0.001), Closed(1), Prompts(20, 8, chat=chat), 1.0))
    assert len(seen) == 16
    for each in seen:
        assert (each.ttft_s, each.latency_s, each.tpot_s) == pytest.approx((0.025, 0.06, 0.005))
        assert each.gaps_s == pytest.approx([0.005] * 7)
        assert (each.tokens, each.input_tokens) == (8, 20)


def test_a_level_has_the_rate_and_all_figures_of_the_server() -> None:
    """Steps of 6 ms. A new request waits for the step that runs: its first token comes after two."""
    reports = virtual(Timing(step_s=0.006), Closed(4), Prompts(10, 32), 5.0)
    windows = [report.window for report in reports]
    assert {window.concurrency for window in windows if window.streams} == {4}
    assert reports[-1].tokens == 32 * reports[-1].answered
    level = level_of(windows, 4)
    assert set(level.figures) == set(level.high) == set(Figure)
    assert level.rate == pytest.approx(4 * 32 / (33 * 0.006))
    assert level.figures[Figure.TTFT_P95] == pytest.approx(0.012)
    assert (level.figures[Figure.TPOT_P50], level.figures[Figure.ITL_P95]) == pytest.approx((0.006, 0.006))
    assert level.figures[Figure.P99] == pytest.approx(33 * 0.006)


def test_every_request_that_was_due_in_a_stall_counts_as_slow() -> None:
    """One request every 20 ms, no token from 1 s to 1.5 s: who came in it waited for its end."""
    due_s = tuple(0.02 * number for number in range(100))
    reports = virtual(Timing(step_s=0.001, stall_at_s=1.0, stall_s=0.5), Replay(due_s), Prompts(10, 2), 9.0)
    seen = streams(reports)
    assert len(seen) == 100
    charged = sorted(stream.ttft_s for stream in seen)[-25:]
    assert charged == pytest.approx(sorted(1.5 - at_s for at_s in due_s if 1.0 <= at_s < 1.5), abs=0.0015)


def test_the_wait_for_a_connection_is_part_of_the_latency() -> None:
    """Three requests at one moment, one connection: each waits for those before it, and that is in its TTFT."""
    reports = virtual(Timing(step_s=0.01), Replay((0.0, 0.0, 0.0), most_outstanding=1), Prompts(10, 5), 9.0)
    assert [each.ttft_s for each in streams(reports)] == pytest.approx([0.01, 0.06, 0.11])
    assert [each.tpot_s for each in streams(reports)] == pytest.approx([0.01] * 3)
    assert reports[-1].late == 2


def test_a_server_that_is_full_shows_the_wait_in_its_first_token() -> None:
    seen = streams(virtual(Timing(step_s=0.01, sequences=2), Closed(4), Prompts(10, 10), 5.0))[8:]
    assert [each.ttft_s for each in seen] == pytest.approx([0.11] * len(seen))
    assert [each.tpot_s for each in seen] == pytest.approx([0.01] * len(seen))


def test_a_replay_ends_by_itself_and_keeps_the_lengths_of_its_trace() -> None:
    lengths = [(30, 2), (10, 4), (20, 3)]
    with in_thread(Timing(step_s=0.002)) as url:
        make = OpenAi(url, chat=False).targets(Prompts(chat=False), trace=iter(lengths))
        seen = streams(list(generate(make, Replay((0.0, 0.02, 0.04)), every_s=0.05)))
    assert [(each.input_tokens, each.tokens) for each in seen] == lengths
    assert "load" not in [thread.name for thread in threading.enumerate()]


def test_a_chunk_may_hold_several_tokens() -> None:
    with in_process(Timing(step_s=0.002, tokens_per_piece=3)) as url:
        seen = streams(loaded(url, Open(50.0), SHORT, answers(3)))
    assert {(each.tokens, len(each.gaps_s)) for each in seen} == {(8, 2)}


def test_words_stand_in_for_token_ids_that_a_server_refuses() -> None:
    with in_thread(Timing(step_s=0.001, bad="no_ids")) as url:
        seen = streams(loaded(url, Closed(1), Prompts(50, 2, chat=False), answers(2)))
    assert {each.input_tokens for each in seen} == {50}


def test_tokens_of_the_chat_template_count_towards_the_requested_length() -> None:
    with in_thread(Timing(step_s=0.001)) as url:
        make = OpenAi(url).targets(Prompts(50, 2))
        prompts = [ask.prompt for ask in islice(make().requests, 2)]  # type: ignore[attr-defined]
    assert [len(str(prompt).split()) for prompt in prompts] == [50 - TEMPLATE_TOKENS] * 2
    assert prompts[0] != prompts[1]


def test_fields_that_a_server_refuses_are_left_out() -> None:
    with in_thread(Timing(step_s=0.001, bad="no_options")) as url:
        assert streams(loaded(url, Closed(1), SHORT, answers(1)))


def test_warm_up_requests_are_in_no_report() -> None:
    with in_thread(Timing(step_s=0.001)) as url:
        load = generate(OpenAi(url).targets(SHORT), Closed(2), every_s=0.05, warm_up=6)
        assert next(load).answered == 0
        load.close()


BAD = {
    "garbage": "the stream does not consist of server-sent events: '<html>'",
    "not_json": "the stream has a chunk that is not JSON: '{oops'",
    "not_http": "the answer is not HTTP/1.1",
    "stall": "the server stalled: nothing came for 0.1 s, in the middle of the answer",
    "close": "the connection was closed before the answer was complete",
    "end": "the stream ended early: it has neither a finish_reason nor [DONE]",
    "too_many": "HTTP 429: too many requests: queue is full (1 at once)",
    "unauthorized": "HTTP 401: it requires an API key: set MLCD_ENDPOINT_KEY",
    "error": "the server ended the stream with an error: out of memory",
    "no_usage": "the stream lacks the requested usage (completion_tokens), so tokens cannot be counted",
    "no_content": "the answer has no content",
    "few_tokens": "the server counts 1 tokens, but streamed 8 chunks of text",
    "many_tokens": "the server counts 10000 tokens, but at most 1 were requested",
    "plain": "the answer is not a stream of server-sent events",
}


@pytest.mark.parametrize("bad", BAD)
def test_errors_of_a_misbehaving_server_are_one_line(bad: str) -> None:
    assert failing(bad).endswith(BAD[bad])


def test_an_unknown_model_is_answered_with_those_that_there_are() -> None:
    with in_thread(Timing()) as url, pytest.raises(BackendError, match=r"HTTP 404: .*is one of its models: fake"):
        OpenAi(url, "llama").targets(SHORT)


def test_an_api_key_is_taken_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with in_thread(Timing(step_s=0.001, bad="unauthorized")) as url:
        assert not OpenAi(url, "fake").is_ready()
        monkeypatch.setenv(KEY_VARIABLE, "wrong")
        with pytest.raises(BackendError, match=f"HTTP 401: the API key in {KEY_VARIABLE} is refused"):
            OpenAi(url, "fake").models()
        monkeypatch.setenv(KEY_VARIABLE, "secret")
        assert OpenAi(url, "fake").is_ready()
        assert OpenAi(url + "/v1/").models() == ("fake",)


def test_a_refused_connection_is_one_line() -> None:
    server = OpenAi("http://127.0.0.1:9", "fake")
    assert not server.is_ready()
    with pytest.raises(BackendError, match=r"cannot connect to 127\.0\.0\.1:9: connection refused"):
        server.targets(SHORT)


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://a", "http://:80", "http://a:port"])
def test_an_invalid_address_is_refused(url: str) -> None:
    with pytest.raises(UserError, match="expected the address of a server"):
        OpenAi(url)


def test_requests_that_fail_in_a_load_are_counted_and_others_go_on() -> None:
    class SometimesAsked:
        """Asks for another model every other time."""

        def __init__(self) -> None:
            self.target = make()

        async def send(self) -> Stream | None:
            self.target.template.model = "llama" if self.target.template.model == "fake" else "fake"  # type: ignore[attr-defined]
            return await self.target.send()

        async def close(self) -> None:
            await self.target.close()

    with in_thread(Timing(step_s=0.001)) as url:
        make = OpenAi(url).targets(SHORT)
        with closing(generate(SometimesAsked, Closed(1, pause_s=0.0), every_s=0.05)) as load:
            last = next(report for report in load if report.answered >= 3 and report.window.failures >= 3)
    assert last.window.error == "HTTP 404: The model `llama` does not exist."


@pytest.mark.parametrize("piece", [b"[]", b"{}", b'"a"', b'{"choices": 1}', b'{"choices": [null]}', b"[" * 100_000])
def test_chunks_that_are_not_of_a_completion_are_one_line(piece: bytes) -> None:
    with pytest.raises(RequestFailed, match="the stream has a chunk that is no"):
        StreamChunks().on_event(piece, 0.0)


def test_reasoning_counts_as_content_and_the_role_alone_does_not() -> None:
    chunks = StreamChunks()
    chunks.on_event(b'{"choices": [{"delta": {"role": "assistant", "content": ""}}]}', 1.0)
    chunks.on_event(b'{"choices": [{"delta": {"reasoning_content": "hm"}}]}', 2.0)
    chunks.on_event(b'{"choices": [{"delta": {"content": "yes"}, "finish_reason": "stop"}]}', 4.0)
    chunks.on_event(b'{"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}}', 5.0)
    assert chunks.stream(0.5, 2) == Stream(1.5, 3.5, 2, (2.0,), 7)


def test_a_request_says_what_kind_of_prompt_it_has() -> None:
    assert PromptRequest("a b", 1).as_chat_or_text(chat=True) == {"messages": [{"role": "user", "content": "a b"}]}
    assert PromptRequest([5, 6], 1).as_chat_or_text(chat=False) == {"prompt": [5, 6]}
    said = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"}]
    assert PromptRequest(said, 1).as_chat_or_text(chat=True) == {"messages": said}
    assert PromptRequest(said, 1).as_chat_or_text(chat=False) == {"prompt": "be brief\nhi"}
