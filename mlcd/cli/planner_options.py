"""The options of a planner's command, made from the words that its jobs are asked for in."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from mlcd.cli.options import parsed_by, shapes
from mlcd.planners.form.words import GOALS, LEARNING_RATES, MOST_PARALLEL, SEARCHES, words_of
from mlcd.planners.serve.caps import CAPS, METHOD, SERVERS, TRIALS, WHERE

if TYPE_CHECKING:
    from mlcd.core.planner import Planner

HELP = {
    "goal": ("", "What to look for; {usual}."),
    "budget": ("USD", "Dollars for the search and the run together, such as 100; 'none'."),
    "deadline": ("TIME", "Time for the search and the run together: 6h, 1d 4h; 'none'."),
    "confidence": ("SHARE", "Confidence of a certificate, such as 0.9; 99 %."),
    "max_probe": ("USD", "Dollars that one probe may cost, such as 20; 15 % of the budget; 'none'."),
    "max_hourly": ("USD", "Dollars an hour that may be rented at once, such as 50; 'none'."),
    "on": ("BACKEND", "Where: simulated, recorded:DIR, market:DIR, local, ray:FILE, skypilot, functions."),
    "method": ("NAME", "How to search: net-value, heterbo ...; net-value."),
    "seed": ("INTEGER", "Seed of everything random; 0."),
    "nodes": ("RANGE", "How many nodes, such as 1..50."),
    "instances": ("PATTERN", "Instance types, such as 'c5.*'; repeatable."),
    "parallel": ("INTEGER", f"How many probes may run at once, up to {MOST_PARALLEL}; 4."),
    "early_look": ("SHARE", "After this share of a probe, check if the rest is worth it; 0.3, 'none'."),
    "target_loss": ("LOSS", "On functions: the loss that ends the training."),
    "functions": ("RANGE", "On functions: how many, such as 1..50."),
    "memory": ("RANGE", "On functions: MB of each, such as 512..1769."),
    "storage": ("NAMES", "On functions: their storage: s3, dynamodb, elasticache, vm-ps; several with commas."),
    "concurrency": ("INTEGER", "On functions: how many the account can run at once."),
    "fresh": ("", "On functions: calibrate again, without stored calibrations."),
    "trials": ("INTEGER", "Hyperparameter settings to try, such as 64."),
    "eta": ("INTEGER", "One of so many trials continues after each stage; 2."),
    "epochs_per_stage": ("INTEGER", "Epochs of each trial in a stage; 2."),
    "workers": ("RANGE", "How many workers, such as 1..8."),
    "batch": ("RANGE", "Global batches: 64..1024 (doubling), a list such as 96,192, or one."),
    "target": ("METRIC", "The end: 'accuracy >= 0.97'."),
    "search": ("", "Probe every configuration, a few extreme ones (default), or none: rank by models of earlier runs."),
    "learning_rate": ("", "How the learning rate follows the batch; none."),
    **{cap: ("TIME", f"{words[0].upper()}{words[1:]} within this: 30ms; 'none'.") for cap, (_, words) in CAPS.items()},
    "min_rps": ("RATE", "Requests a second it has to answer."),
    "knowledge": ("NAME", "Models seen before: a folder of `mlcd learn`, cpu or h200."),
    "engine": ("NAME", "What serves a language model: vllm, sglang, trtllm, llama.cpp; vllm."),
    "endpoint": ("URL", "A language model that is served already, by OpenAI's API: http://host:8000."),
    "input_tokens": ("INTEGER", "Of a language model: tokens of a prompt; 512."),
    "output_tokens": ("INTEGER", "Of a language model: tokens of an answer; 128."),
    "prompts": ("FILE", "Of a language model: prompts of your own, as JSON Lines."),
    "shared_prefix": ("INTEGER", "Of a language model: tokens that all prompts begin with; 0."),
    "sweep": ("LIST", "Of a language model: requests at once that a trial tries, 1,4,16 or 1..64; 1..256."),
    "price": ("USD", "Dollars an hour of the endpoint, or of each GPU of this machine."),
}
"""What stands for the value of each option, and its help."""
PARTICULAR = {
    ("tune", "goal"): "What to look for; cheapest where only a deadline is given, else fastest.",
    ("tune", "on"): "Where: functions, functions:simulated, functions:aws_lambda.",
    ("tune", "method"): "How to plan: exact, greedy, lambdaml, siren, cirrus, fixed; exact.",
    ("scale", "on"): "Where: simulated, local, ray:FILE, skypilot:CLOUD.",
    ("serve", "budget"): "Dollars for all trials together, such as 5; 'none'.",
    ("serve", "deadline"): "Time for all trials together: 30m; 'none'.",
    ("serve", "on"): f"Where: local, recorded:DIR, skypilot:CLOUD; {WHERE}.",
    ("serve", "method"): f"How to search: grey-box, falcon ...; {METHOD}.",
    ("serve", "trials"): f"How many trials at the most; {TRIALS}.",
    ("serve", "target"): "Where it will be deployed: trials run on its server, which is to be installed; our own.",
    ("what-if", "goal"): "What to look for; as in the run. A knee is for `mlcd scale`, per-dollar for `mlcd serve`.",
}
"""Help that differs for one command."""
CHOICES = {
    ("scale", "search"): SEARCHES,
    ("scale", "learning_rate"): LEARNING_RATES,
    ("serve", "target"): SERVERS,
}
AS_TYPED = ("on", "method", "knowledge", "engine", "endpoint", "prompts")
"""A shell may name a path, or what another package adds; a request may not."""


def options_of(kind: str, *names: str) -> list[Callable[[Any], Any]]:
    """The options of a kind of question, or those of these names."""
    return [_option(kind, name) for name in names or words_of(kind)]


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
    text = PARTICULAR.get((kind, name), text)
    if name == "goal":
        goals = GOALS.get(kind) or _added(kind).goals
        return click.option(flag, type=click.Choice(goals), help=text.format(usual=goals[0]))
    if (kind, name) in CHOICES:
        return click.option(flag, type=click.Choice(CHOICES[kind, name]), help=text)
    if name == "fresh":
        return click.option(flag, is_flag=True, help=text)
    if name == "instances":
        return click.option(flag, multiple=True, metavar=metavar, help=text)
    if name in AS_TYPED:
        also = ["--backend"] if (kind, name) == ("scale", "on") else []
        return click.option(flag, *also, metavar=metavar, help=text)
    field = ["storages"] if name == "storage" else []
    return click.option(flag, *field, metavar=metavar, callback=parsed_by(words_of(kind)[name]), help=text)
