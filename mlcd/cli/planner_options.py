"""The options of a planner's command, made from the names of `mlcd.planners.form.option_parsers`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from mlcd.cli.options import parsed_by, patterns_or_none, shapes
from mlcd.planners.form.option_parsers import GOALS, LEARNING_RATES, MOST_PARALLEL, SEARCHES, parsers_of
from mlcd.planners.serve.caps import CAPS, METHOD, SERVERS, TRIALS, WHERE

if TYPE_CHECKING:
    from mlcd.core.planner import Planner

HELP = {
    "goal": ("", "What to optimize for. Default: {default}."),
    "budget": ("USD", "Most dollars for the search and the final run together, such as 100; 'none' for no limit."),
    "deadline": ("TIME", "Most time for the search and the final run together: 6h, 1d 4h; 'none' for no limit."),
    "confidence": ("SHARE", "Probability with which a certified choice keeps the limits, such as 0.9. Default: 99 %."),
    "max_probe": ("USD", "Most dollars for one probe, such as 20; 'none'. Default: 15 % of the budget."),
    "max_hourly": ("USD", "Most dollars an hour for all machines rented at once, such as 50. Default: no limit."),
    "on": ("BACKEND", "Where to run: simulated, recorded:DIR, market:DIR, local, ray:FILE, skypilot, functions."),
    "method": ("NAME", "Search method: net-value, heterbo, random and others. Default: net-value."),
    "seed": ("INTEGER", "Random seed. Default: 0."),
    "nodes": ("RANGE", "How many nodes, such as 1..50."),
    "instances": ("PATTERN", "Instance types to search, such as 'c5.*,p3.*'; repeatable."),
    "parallel": ("INTEGER", f"Most probes at the same time, up to {MOST_PARALLEL}. Default: 4."),
    "early_look": ("SHARE", "Share of a probe after which it may be cut short; 'none' for never. Default: 0.3."),
    "target_loss": ("LOSS", "On functions: stop training when this loss is reached."),
    "functions": ("RANGE", "On functions: how many functions, such as 1..50."),
    "memory": ("RANGE", "On functions: MB of memory of each, such as 512..1769."),
    "storage": ("NAMES", "On functions: storage for gradients: s3, dynamodb, elasticache, vm-ps; comma-separated."),
    "concurrency": ("INTEGER", "On functions: how many the account can run at once."),
    "fresh": ("", "On functions: measure again, without stored calibrations."),
    "trials": ("INTEGER", "How many hyperparameter settings to try, such as 64."),
    "eta": ("INTEGER", "After each stage, one of this many trials continues. Default: 2."),
    "epochs_per_stage": ("INTEGER", "Epochs that each trial trains in a stage. Default: 2."),
    "workers": ("RANGE", "How many workers, such as 1..8."),
    "batch": ("RANGE", "Global batch sizes: 64..1024 (each twice the last), a list such as 96,192, or one size."),
    "target": ("METRIC", "When the training is done: 'accuracy >= 0.97'."),
    "search": (
        "",
        "What to probe: full, every configuration; partial, a few extreme ones; none, nothing: rank by models of "
        "earlier runs. Default: partial.",
    ),
    "learning_rate": ("", "How the learning rate follows the batch size. Default: none, it stays."),
    **{cap: ("TIME", f"Cap on the {words}, such as 30ms; 'none'.") for cap, (_, words) in CAPS.items()},
    "min_rps": ("RATE", "Fewest requests a second that it must answer."),
    "knowledge": ("NAME", "Models measured earlier, to start from: cpu, h200, or a folder of `mlcd learn`."),
    "engine": ("NAME", "Language model: its engine: vllm, sglang, trtllm or llama.cpp. Default: vllm."),
    "endpoint": ("URL", "Language model: a running server with OpenAI's API, such as http://host:8000."),
    "input_tokens": ("INTEGER", "Language model: tokens of a prompt. Default: 512."),
    "output_tokens": ("INTEGER", "Language model: tokens of an answer. Default: 128."),
    "prompts": ("FILE", "Language model: your own prompts, as JSON Lines."),
    "shared_prefix": ("INTEGER", "Language model: tokens with which all prompts begin alike. Default: 0."),
    "sweep": ("LIST", "Language model: concurrent requests to test: 1,4,16 or 1..64. Default: 1..256."),
    "price": ("USD", "Dollars an hour of the endpoint, or of each GPU of this machine."),
}
"""The placeholder for the value of each option, and its help."""
HELP_OF_COMMAND = {
    ("tune", "goal"): "What to optimize for. Default: fastest; with a deadline and no budget, cheapest.",
    ("tune", "on"): "Where to run: functions, functions:simulated, functions:aws_lambda.",
    ("tune", "method"): "Planning method: exact, greedy, lambdaml, siren, cirrus, fixed. Default: exact.",
    ("scale", "on"): "Where to run: simulated, local, ray:FILE, skypilot:CLOUD.",
    ("serve", "budget"): "Most dollars for all trials together, such as 5; 'none' for no limit.",
    ("serve", "deadline"): "Most time for all trials together: 30m; 'none' for no limit.",
    ("serve", "on"): f"Where to run: local, recorded:DIR, skypilot:CLOUD. Default: {WHERE}.",
    ("serve", "method"): f"Search method: grey-box, falcon and others. Default: {METHOD}.",
    ("serve", "trials"): f"Most trials. Default: {TRIALS}.",
    ("serve", "target"): "The server that it will be deployed on, and tried on; it must be installed. Default: MLCD's.",
    ("what-if", "confidence"): "Probability with which a certified choice keeps the limits. Default: as in the run.",
    ("what-if", "goal"): "What to optimize for; knee is for `mlcd scale`, per-dollar for `mlcd serve`. Default: as in "
    "the run.",
}
"""Help that differs for one command."""
CHOICES = {
    ("scale", "search"): SEARCHES,
    ("scale", "learning_rate"): LEARNING_RATES,
    ("serve", "target"): SERVERS,
}
AS_TYPED = ("on", "method", "knowledge", "engine", "endpoint", "prompts")
"""Not parsed: they may name paths, or what another package adds."""


def options_of(kind: str, *names: str) -> list[Callable[[Any], Any]]:
    """The options of a kind of question, or those of these names."""
    return [_option(kind, name) for name in names or parsers_of(kind)]


def _added(kind: str) -> Planner:
    """A planner of another package; ours are not imported for their options."""
    from mlcd.core.planner import planner_named

    return planner_named(kind)


def _option(kind: str, name: str) -> Callable[[Any], Any]:
    flag = f"--{name.replace('_', '-')}"
    own = next((each for each in _added(kind).options if each.name == name), None) if kind not in GOALS else None
    if own is not None:
        return click.option(flag, metavar=own.metavar, callback=parsed_by(own.parse), help=own.help)
    if name == "shape":
        return shapes
    metavar, text = HELP[name]
    text = HELP_OF_COMMAND.get((kind, name), text)
    if name == "goal":
        goals = GOALS.get(kind) or _added(kind).goals
        return click.option(flag, type=click.Choice(goals), help=text.format(default=goals[0]))
    if (kind, name) in CHOICES:
        return click.option(flag, type=click.Choice(CHOICES[kind, name]), help=text)
    if name == "fresh":
        return click.option(flag, is_flag=True, help=text)
    if name == "instances":
        return click.option(flag, multiple=True, metavar=metavar, callback=parsed_by(patterns_or_none), help=text)
    if name in AS_TYPED:
        also = ["--backend"] if (kind, name) == ("scale", "on") else []
        return click.option(flag, *also, metavar=metavar, help=text)
    field = ["storages"] if name == "storage" else []
    return click.option(flag, *field, metavar=metavar, callback=parsed_by(parsers_of(kind)[name]), help=text)
