"""mlcd replicas: how many replicas of which deployment the expected traffic needs, and their price."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from math import floor
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from mlcd.cli.console import plain_table
from mlcd.cli.options import FILE, consoles, open_ledger, output, parsed_by, print_json, run_name
from mlcd.core.errors import UserError, WrongState
from mlcd.core.units import format_rate, format_usd, parse_usd
from mlcd.planners.serve.llm.replicas import ApiPrice, Fleet, Lengths, Option, break_even, cheapest, fleet, options
from mlcd.planners.serve.llm.traffic import Traffic, of_rate, parse_peak, parse_traffic_file
from mlcd.planners.serve.nouns import Counted, ServingTask, serving_task
from mlcd.reports.serve.words import format_price, knob_names, requirement_words

WIDE = 6
"""Most rows of the table, the cheapest first."""


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e9:
        raise ValueError(f"'{text}': expected a number above zero, such as 40")
    return value


def _api_price(text: str) -> ApiPrice:
    """Dollars for a million tokens: '0.60' for all, or '0.15/0.60' for those of prompts and of answers."""
    prompts, _, answers = text.partition("/")
    try:
        return ApiPrice(parse_usd(prompts), parse_usd(answers or prompts))
    except ValueError:
        raise ValueError(f"'{text}': expected dollars for a million tokens, such as 0.60, or 0.15/0.60") from None


@click.command()
@run_name
@click.option("--rate", metavar="RATE", callback=parsed_by(_positive), help="Expected requests a second.")
@click.option(
    "--peak",
    "peaks",
    multiple=True,
    metavar="PEAK",
    callback=parsed_by(lambda texts: [parse_peak(text) for text in texts]),
    help="Hours of the day with a multiple of the rate: 3x@11:00-14:00; repeatable.",
)
@click.option(
    "--traffic",
    type=FILE,
    help="Instead of --rate: a CSV file with hour,requests_per_s, or with a timestamp for each request.",
)
@click.option("--spare/--no-spare", default=True, help="Plan one more replica, in case one is lost. Default: --spare.")
@click.option(
    "--api-price",
    metavar="USD",
    callback=parsed_by(_api_price),
    help="Compare with an API: its dollars for a million tokens, 0.60, or 0.15/0.60 for prompts and answers.",
)
@click.option(
    "--input-tokens",
    metavar="TOKENS",
    callback=parsed_by(_positive),
    help="Tokens of a prompt. Default: as in the trials.",
)
@click.option(
    "--output-tokens",
    metavar="TOKENS",
    callback=parsed_by(_positive),
    help="Tokens of an answer. Default: as in the trials.",
)
@output
def replicas(run: str, output: str, **asked: Any) -> None:
    """Replicas that a language model needs for your traffic, and their price.

    Computed from what the trials of `mlcd serve` measured, at no cost. Requests arrive at random, so each replica is
    planned for fewer requests than its trial answered.

    \b
    mlcd replicas last --rate 40 --peak 3x@11:00-14:00
    mlcd replicas last --traffic day.csv --api-price 0.15/0.60
    """
    ledger = open_ledger()
    name = ledger.find(run)
    account = ledger.account(name)
    task = serving_task(account.job)
    if task is None or task.counted is not Counted.TOKENS:
        raise UserError(f"run '{name}' does not serve a language model; mlcd replicas works only for those")
    traffic, lengths, spare = _traffic(asked), _lengths(task, asked), int(asked["spare"])
    found = options(account.job, account.searched.measurements, lengths)
    chosen = cheapest(found, traffic, lengths, spare)
    if chosen is None:
        kept = " and ".join(requirement_words(task))
        none = f"keeps {kept}, at any concurrency" if kept else "succeeded"
        raise WrongState(f"run '{name}' has no trial that {none}: mlcd show {name}")
    price: ApiPrice | None = asked["api_price"]
    even = break_even(found, traffic, lengths, price, spare) if price is not None else None
    others = sorted((fleet(each, traffic, lengths, spare) for each in found), key=lambda each: each.usd_per_month)
    if output == "json":
        print_json(_document(name, chosen, others, spare, price, even))
        return
    results, _ = consoles()
    results.print(_table(others[:WIDE], chosen))
    words = _words(chosen, spare, price, even)
    if task.language is None or not task.language.engine.runs_already:
        words.append(_how_to_deploy(name, chosen))
    for each in words:
        results.print(each, markup=False)


def _traffic(asked: Mapping[str, Any]) -> Traffic:
    path: Path | None = asked["traffic"]
    if (path is None) == (asked["rate"] is None):
        raise UserError("give the expected traffic: either --rate REQUESTS_A_SECOND or --traffic FILE")
    if path is None:
        return of_rate(asked["rate"], asked["peaks"])
    if asked["peaks"]:
        raise UserError("--peak works only with --rate; a --traffic file has the rate of each hour")
    try:
        return parse_traffic_file(path.read_text(encoding="utf-8"), str(path))
    except FileNotFoundError:
        raise UserError(
            f"{path}: no such file; it is a CSV file with hour,requests_per_s, or with a timestamp for each request"
        ) from None
    except UnicodeError:
        raise UserError(f"{path}: not UTF-8 text") from None


def _lengths(task: ServingTask, asked: Mapping[str, Any]) -> Lengths:
    prompts = task.language.prompts if task.language is not None else None
    known = prompts is not None and not prompts.file
    tokens_in = asked["input_tokens"] or (prompts.input_tokens if prompts is not None and known else None)
    tokens_out = asked["output_tokens"] or (prompts.output_tokens if prompts is not None and known else None)
    if tokens_in is None or tokens_out is None:
        raise UserError("the run does not say how long requests are; give --input-tokens and --output-tokens")
    return Lengths(tokens_in, tokens_out)


def _table(fleets: Sequence[Fleet], chosen: Fleet) -> Table:
    names = knob_names(each.option.configuration for each in fleets)
    right = ("TRIAL", "AT ONCE", "REQ/S", "CLOSED LOOP", "REPLICAS", "$/H EACH", "$/MONTH", "$/M OUTPUT")
    table = plain_table((*(name.upper() for name in names),), right)
    table.add_column("CHOSEN")
    for each in fleets:
        option, takes = each.option, each.option.replica
        table.add_row(
            *(str(dict(option.knobs).get(name, "-")) for name in names),
            str(option.trial),
            str(takes.admission_limit),
            format_rate(takes.rate),
            format_rate(takes.closed_rate),
            _span(each),
            format_price(option.configuration.usd_per_hour),
            format_usd(each.usd_per_month),
            format_price(each.usd_per_million_output),
            "✓" if each.option is chosen.option else "",
        )
    return table


def _span(planned: Fleet) -> str:
    least, most = min(planned.counts), max(planned.counts)
    return f"{least}" if least == most else f"{least}..{most}"


def _words(planned: Fleet, spare: int, price: ApiPrice | None, even: float | None) -> list[str]:
    lost = "one of them may fail" if spare else "none of them may fail"
    month = f"{format_usd(planned.usd_per_month)} a month of 730 h"
    fixed = f"{format_usd(planned.usd_per_month_fixed)} with {max(planned.counts)} all the time"
    tokens = f"{format_price(planned.usd_per_million_output)} a million tokens of answers, "
    tokens += f"{format_price(planned.usd_per_million_total)} of all tokens"
    words = [
        f"By hour: {'; '.join(_hours(planned.counts))}. {lost[0].upper()}{lost[1:]}.",
        f"{month}{'' if min(planned.counts) == max(planned.counts) else f', or {fixed}'}. {tokens}.",
    ]
    if price is not None:
        words.append(_beside(planned, price, even))
    scaling = autoscaling(planned)
    words.append(
        f"Autoscaling: {scaling['min_replicas']} to {scaling['max_replicas']}; KServe and Knative: target concurrency "
        f"{scaling['target_concurrency']}, limit {scaling['most_concurrency']}; SkyServe: target_qps_per_replica "
        f"{scaling['target_qps_per_replica']:g}; KEDA: a threshold of {scaling['target_concurrency']} running requests."
    )
    return words


def _how_to_deploy(name: str, planned: Fleet) -> str:
    option, scaling = planned.option, autoscaling(planned)
    return (
        f"Deploy it: mlcd export {name} --to skyserve --trial {option.trial} "
        f"--concurrency {option.replica.admission_limit} "
        f"--replicas {scaling['min_replicas']}..{scaling['max_replicas']}"
    )


def _beside(planned: Fleet, price: ApiPrice, even: float | None) -> str:
    api = planned.api_usd_per_month(price)
    words = (
        f"An API at {format_price(price.input_usd)} in, {format_price(price.output_usd)} out: {format_usd(api)} a month"
    )
    if even is None:
        return f"{words}; it is cheaper at any traffic."
    return f"{words}; yours is cheaper from {format_rate(even)} requests a second on average."


def _hours(counts: Sequence[int]) -> list[str]:
    """'00-11 h: 14'."""
    words, start = [], 0
    for count, together in groupby(counts):
        end = start + len(list(together))
        words.append(f"{start:02}-{end:02} h: {count}")
        start = end
    return words


def autoscaling(planned: Fleet) -> dict[str, float]:
    """Settings of tools that scale by concurrent requests, or by requests a second."""
    most = max(planned.counts)
    rate, in_flight = planned.option.replica.target(most)
    return {
        "min_replicas": min(planned.counts),
        "max_replicas": most,
        "target_concurrency": max(1, floor(in_flight)),
        "most_concurrency": planned.option.replica.admission_limit,
        "target_qps_per_replica": float(f"{rate:.3g}"),
    }


def _document(
    name: str, planned: Fleet, fleets: Sequence[Fleet], spare: int, price: ApiPrice | None, even: float | None
) -> dict[str, Any]:
    document: dict[str, Any] = {
        "run": name,
        "requests_per_s": {"average": planned.traffic.average, "by_hour": list(planned.traffic.rates)},
        "tokens": {"input": planned.lengths.input_tokens, "output": planned.lengths.output_tokens},
        "spare": spare,
        "chosen": {**_fleet(planned), "by_hour": list(planned.counts), "autoscaling": autoscaling(planned)},
        "deployments": [_fleet(each) for each in fleets],
    }
    if price is not None:
        usd = planned.api_usd_per_month(price)
        document["api"] = {"usd_per_month": usd, "break_even_requests_per_s": even}
    return document


def _fleet(planned: Fleet) -> dict[str, Any]:
    option: Option = planned.option
    return {
        "trial": option.trial,
        "knobs": dict(option.knobs),
        "concurrency": option.replica.admission_limit,
        "requests_per_s_per_replica": option.replica.rate,
        "closed_loop_requests_per_s": option.replica.closed_rate,
        "replicas": {"least": min(planned.counts), "most": max(planned.counts)},
        "usd_per_month": planned.usd_per_month,
        "usd_per_month_fixed": planned.usd_per_month_fixed,
        "usd_per_million_output_tokens": planned.usd_per_million_output,
        "usd_per_million_tokens": planned.usd_per_million_total,
    }
