"""Is the load generator for streams trustworthy? Its figures compared with aiperf's and guidellm's; and 2,000 streams.

    python -m venv /tmp/venv-aiperf && /tmp/venv-aiperf/bin/pip install aiperf
    python -m venv /tmp/venv-guidellm && /tmp/venv-guidellm/bin/pip install guidellm
    .venv/bin/python benchmarks/stream_load.py --aiperf /tmp/venv-aiperf --guidellm /tmp/venv-guidellm

The server is tests/mlcd_fixtures/openai_server.py, in its own process. The n-th request of each tool has the same
time to its first token and the same time per token, drawn from log-normal distributions: only the measuring differs.
The tools alternate, so that other load on the machine affects all. Our TPOT, (last - first) / (tokens - 1) of
an answer, is the 'inter token latency' of both tools.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import click
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from mlcd_fixtures.openai_server import Timing, in_process

from mlcd.clouds.load.generate import Arrivals, Closed, Open, generate
from mlcd.clouds.load.openai import OpenAi, StreamTarget
from mlcd.clouds.load.prompts import WORDS
from mlcd.clouds.load.stream_chunks import StreamChunks
from mlcd.planners.serve.llm.nouns import Prompts, Stream

INPUT_TOKENS, OUTPUT_TOKENS, CLIENTS, WARM_UP = 64, 24, 16, 32
FIRST_S, STEP_S, SPREAD = 0.15, 0.02, 0.4
CLOSE = 0.03
"""Allowed relative difference from another tool's figure."""
Figures = dict[str, float]
"""Milliseconds, by name."""


def quantiles(ttft_ms: list[float], tpot_ms: list[float]) -> Figures:
    both = {"TTFT": ttft_ms, "TPOT": tpot_ms}
    return {f"{name} p{q}": float(np.percentile(each, q)) for name, each in both.items() for q in (50, 95)}


@dataclass
class NumberedTarget(StreamTarget):
    """Also keeps each stream by the number of its request."""

    numbers: Iterator[int] = field(default_factory=count)
    seen: dict[int, Stream] = field(default_factory=dict)

    async def send(self) -> Stream:
        number = next(self.numbers)
        self.seen[number] = await super().send()
        return self.seen[number]


def our_figures(url: str, requests: int, seed: int) -> tuple[Figures, int]:
    """Figures of the first requests, as in the other tools; the first answers would be biased to short ones."""
    first = OpenAi(url, "fake").targets(Prompts(INPUT_TOKENS, OUTPUT_TOKENS), seed)()
    assert isinstance(first, StreamTarget)
    numbers, seen, failures = count(), dict[int, Stream](), 0
    make = lambda: NumberedTarget(first.template, first.requests, numbers, seen)  # noqa: E731
    with closing(generate(make, Closed(CLIENTS), every_s=0.05, timeout_s=60.0, warm_up=WARM_UP)) as reports:
        for report in reports:
            failures += report.window.failures
            if all(number in seen for number in range(WARM_UP, WARM_UP + requests)) or failures:
                break
    streams = [seen[number] for number in range(WARM_UP, WARM_UP + requests) if number in seen]
    return quantiles([1e3 * s.ttft_s for s in streams], [1e3 * (s.tpot_s or 0.0) for s in streams]), failures


def aiperf(venv: Path, folder: Path, url: str, requests: int, seed: int) -> tuple[Figures, int]:
    options = {
        "-m": "fake", "--url": url, "--endpoint-type": "chat", "--tokenizer": str(tokenizer(folder)),
        "--isl": INPUT_TOKENS, "--isl-stddev": 0, "--osl": OUTPUT_TOKENS, "--osl-stddev": 0, "--ui": "none",
        "--concurrency": CLIENTS, "--request-count": requests, "--warmup-request-count": WARM_UP,
        "--random-seed": seed, "--artifact-dir": str(folder), "--workers-max": 1, "--extra-inputs": "ignore_eos:true",
    }  # fmt: skip
    words = [str(each) for pair in options.items() for each in pair]
    run(
        venv / "bin" / "aiperf", "profile", "--streaming", "--use-legacy-max-tokens", "--use-server-token-count", *words
    )
    lines = (folder / "profile_export.jsonl").read_text().splitlines()
    metrics = [each["metrics"] for each in map(json.loads, lines) if not each.get("error")]
    ttft, tpot = ([each[name]["value"] for each in metrics] for name in ("time_to_first_token", "inter_token_latency"))
    return quantiles(ttft, tpot), len(lines) - len(metrics)


def guidellm(venv: Path, folder: Path, url: str, requests: int, seed: int) -> tuple[Figures, int]:
    total = requests + WARM_UP
    run(
        venv / "bin" / "guidellm", "run", "--disable-progress",
        "--backend", f"kind=openai_http,target={url},model=fake",
        "--profile", f"kind=concurrent,streams={CLIENTS}",
        "--constraint", f"kind=max_requests,count={total}",
        "--tokenizer", f"kind=hf_auto,model={tokenizer(folder)}",
        "--data", f"kind=synthetic_text,prompt_tokens={INPUT_TOKENS},output_tokens={OUTPUT_TOKENS}",
        "--seed", f"kind=static,value={seed}",
        "--output", f"kind=json,path={folder / 'report.json'}",
    )  # fmt: skip
    done = json.loads((folder / "report.json").read_text())["benchmarks"][0]["requests"]
    answered = sorted(done["successful"], key=lambda each: each["request_start_time"])[WARM_UP:]
    ttft = [each["time_to_first_token_ms"] for each in answered]
    return quantiles(ttft, [each["inter_token_latency_ms"] for each in answered]), len(done["errored"])


def run(*command: str | Path) -> None:
    environment = {**os.environ, "PYTHONPATH": "", "TOKENIZERS_PARALLELISM": "false"}
    done = subprocess.run([str(each) for each in command], capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise click.ClickException(f"{Path(command[0]).name}: {(done.stdout + done.stderr)[-800:]}")


def tokenizer(folder: Path) -> Path:
    """A tokenizer with one token for each word, like the server's."""
    words = ["<unk>", *sorted(set(WORDS))]
    model = {"type": "WordLevel", "vocab": {word: number for number, word in enumerate(words)}, "unk_token": "<unk>"}
    path = folder / "tokenizer"
    path.mkdir(exist_ok=True)
    document = {"version": "1.0", "added_tokens": [], "pre_tokenizer": {"type": "WhitespaceSplit"}, "model": model}
    (path / "tokenizer.json").write_text(json.dumps(document))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "<unk>"}
    (path / "tokenizer_config.json").write_text(json.dumps(config))
    return path


def compare_with(tools: dict[str, Path], requests: int, repeats: int) -> bool:
    """Print our figures and theirs, run by run; returns whether the medians agree."""
    seen: dict[str, list[Figures]] = {"ours": []} | {name: [] for name in tools}
    lost = dict.fromkeys(seen, 0)
    measure: dict[str, Callable[[Path, str, int], tuple[Figures, int]]] = {
        "ours": lambda folder, url, seed: our_figures(url, requests, seed)
    }
    for name, venv in tools.items():
        tool = {"aiperf": aiperf, "guidellm": guidellm}[name]
        measure[name] = lambda folder, url, seed, tool=tool, venv=venv: tool(venv, folder, url, requests, seed)  # type: ignore[misc]
    for seed in range(repeats):
        for name, work in measure.items():
            with (
                in_process(Timing(step_s=STEP_S, first_s=FIRST_S, spread=SPREAD)) as url,
                tempfile.TemporaryDirectory() as folder,
            ):
                figures, failures = work(Path(folder), url, seed)
            seen[name].append(figures)
            lost[name] += failures
            click.echo(
                f"seed {seed}  {name:9s}" + "".join(f"  {key} {value:7.2f} ms" for key, value in figures.items())
            )
    agree = True
    for name in tools:
        for key in seen["ours"][0]:
            ratios = [mine[key] / theirs[key] for mine, theirs in zip(seen["ours"], seen[name], strict=True)]
            agree &= abs(float(np.median(ratios)) - 1) <= CLOSE
            click.echo(
                f"ours / {name:9s} {key}: median {np.median(ratios):.4f}, {min(ratios):.4f} to {max(ratios):.4f}"
            )
    click.echo("failed requests: " + ", ".join(f"{name} {count}" for name, count in lost.items()))
    return agree


@dataclass
class StampedPieces(StreamChunks):
    """Also records the delay from sending to reading of each piece."""

    delays_s: list[float] = field(default_factory=list)

    def add(self, piece: dict[str, Any], now_s: float) -> None:
        super().add(piece, now_s)
        if (sent_s := piece.get("sent_s")) is not None:
            self.delays_s.append(now_s - sent_s)


@dataclass
class StampedTarget(StreamTarget):
    """Also records every delay, and each TTFT from when the request was sent, not from when it was due."""

    delays_s: list[float] = field(default_factory=list)
    ttfts_s: list[float] = field(default_factory=list)

    def chunks(self) -> StreamChunks:
        return StampedPieces(delays_s=self.delays_s)

    async def send(self) -> Stream:
        stream = await super().send()
        self.ttfts_s.append(stream.ttft_s)
        return stream


def load_many(streams: int, step_s: float, tokens: int, seconds: float, opened: bool) -> None:
    """Print how late the generator is with so many streams at once, server included."""
    delays_s, sent_ttfts_s = list[float](), list[float]()
    with in_process(Timing(step_s=step_s, sequences=1_000_000, stamps=True)) as url:
        make = OpenAi(url, "fake").targets(Prompts(INPUT_TOKENS, tokens))

        target = make()
        assert isinstance(target, StreamTarget)
        template = target.template

        def stamped() -> StampedTarget:
            return StampedTarget(target.template, target.requests, delays_s, sent_ttfts_s)

        latency_s = step_s * (tokens + 0.5)  # a request waits for half a step on average
        arrivals: Arrivals = Open(streams / latency_s, most_outstanding=2 * streams) if opened else Closed(streams)
        first, skipped, began_s, cpu_s = -1, 0, 0.0, 0.0
        seen, failures, late, in_flight = list[Stream](), 0, 0, list[int]()
        with closing(generate(stamped, arrivals, timeout_s=120.0)) as reports:
            for report in reports:
                seen += report.window.streams
                failures, late = failures + report.window.failures, report.late
                if first >= 0:
                    in_flight.append(template.in_flight)
                elif report.elapsed_s >= 2 * latency_s:  # all streams are there: count from here
                    first, skipped = len(seen), len(delays_s)
                    began_s, cpu_s = time.monotonic(), time.process_time()
                if report.elapsed_s >= 2 * latency_s + seconds:
                    break
        took_s, used_s = time.monotonic() - began_s, time.process_time() - cpu_s
    delays_ms = 1e3 * np.array(delays_s[skipped:])
    lags_ms = 1e3 * np.array([s.ttft_s - sent for s, sent in zip(seen, sent_ttfts_s, strict=False)][first:])
    tpots_ms = 1e3 * np.array([stream.tpot_s for stream in seen[first:]])
    click.echo(
        f"{streams} streams, {'open' if opened else 'closed'} loop, a token every {1e3 * step_s:g} ms, {took_s:.0f} s:"
    )
    click.echo(
        f"  {len(delays_ms) / took_s:,.0f} chunks a second, {np.mean(in_flight):,.0f} streams at once, "
        f"{failures} failed, {late} late"
    )
    click.echo(f"  a piece is read {spread(delays_ms)} after it was sent; {100 * used_s / took_s:.0f} % of a core")
    if opened:
        click.echo(f"  a request is sent {spread(lags_ms)} after it was due")
    click.echo(f"  TPOT {spread(tpots_ms)}")


def spread(values_ms: np.ndarray[Any, Any]) -> str:
    p50, p95, p99, top = np.percentile(values_ms, [50, 95, 99, 100])
    return f"p50 {p50:.2f}, p95 {p95:.2f}, p99 {p99:.2f}, max {top:.2f} ms"


@click.command()
@click.option("--aiperf", "aiperf_venv", type=click.Path(path_type=Path), help="An environment that has aiperf.")
@click.option("--guidellm", "guidellm_venv", type=click.Path(path_type=Path), help="An environment that has guidellm.")
@click.option("--requests", default=400, show_default=True, help="Of each run, after 32 that are not counted.")
@click.option("--repeats", default=3, show_default=True)
@click.option("--streams", default=2_000, show_default=True)
@click.option("--seconds", default=15.0, show_default=True, help="Of each load of so many streams.")
@click.option("--step-ms", default=100.0, show_default=True, help="The time of a token with so many streams.")
def main(
    aiperf_venv: Path | None,
    guidellm_venv: Path | None,
    requests: int,
    repeats: int,
    streams: int,
    seconds: float,
    step_ms: float,
) -> None:
    """Compare with other tools, if their environments are given; then load with many streams."""
    click.echo(f"{len(os.sched_getaffinity(0))} cores, load average {os.getloadavg()[0]:.1f}")
    tools = {name: venv for name, venv in (("aiperf", aiperf_venv), ("guidellm", guidellm_venv)) if venv is not None}
    for name, venv in tools.items():
        version = subprocess.run(
            [venv / "bin" / "pip", "show", name], capture_output=True, text=True, check=True
        ).stdout
        click.echo(version.splitlines()[0] + " " + version.splitlines()[1].removeprefix("Version: "))
    agree = compare_with(tools, requests, repeats) if tools else True
    for opened in (True, False) if streams else ():
        load_many(streams, step_ms / 1e3, 64, seconds, opened)
    beside_them = f"within {CLOSE:.0%} of the other tools: {'yes' if agree else 'NO'}"
    click.echo(f"load average {os.getloadavg()[0]:.1f}; {beside_them if tools else 'no other tool was given'}")
    sys.exit(0 if agree else 1)


if __name__ == "__main__":
    main()
