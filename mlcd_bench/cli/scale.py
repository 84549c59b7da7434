"""mlcd bench scale: forecasts of scaled training, compared with real runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mlcd.cli.console import plain_table
from mlcd.cli.options import consoles, output, print_json
from mlcd_bench.cli.names import split_names

if TYPE_CHECKING:
    from rich.console import Console

    from mlcd_bench.scale import Choice, Folder, Pooled, Problem

PLACES = ("smallest", "middle", "largest")
RULES = (
    "MEDIAN, P90: |predicted / actual - 1| of the hours to the target; empty for a search that only ranks. COVERED: "
    "share of actual hours within the 90 % interval. UNSEEN: without the batch size of the earlier run. RATIO: the "
    "choice over the oracle's, in hours (fastest), dollars (cheapest) or the root of hours x dollars (knee). Nothing "
    "is random."
)


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--model", default="all", show_default=True, help="Models of the folder, with commas.")
@click.option("--cluster", default="all", show_default=True, help="Clusters of the folder, with commas.")
@click.option(
    "--search", default="all", show_default=True, help="full, partial, none, scavenger-full ...; with commas."
)
@click.option(
    "--reference",
    default="middle",
    show_default=True,
    type=click.Choice(PLACES),
    help="The batch size of the one earlier run.",
)
@click.option(
    "--usd-per-node-hour", default=None, type=click.FloatRange(0, min_open=True), help="The price of a full node."
)
@output
def scale(
    folder: Path, model: str, cluster: str, search: str, reference: str, usd_per_node_hour: float | None, output: str
) -> None:
    """Compare forecasts over workers and batch size with real runs.

    DIR holds throughput.csv (step times) and validation.csv (training runs at several batch sizes).

    \b
    mlcd bench scale DIR
    """
    from mlcd.core.errors import UserError
    from mlcd_bench.scale import NEEDS_OTHERS, SEARCHES, pool, read_folder, score, without_noise

    read = read_folder(folder)
    models = split_names("model", model, read.models)
    clusters = split_names("cluster", cluster, read.clusters)
    searches = split_names("search", search, list(SEARCHES))
    needed = models if set(NEEDS_OTHERS).isdisjoint(searches) else read.models
    everything, left_out = [], []
    for one in _problems(read, needed, clusters, usd_per_node_hour):
        if why := without_noise(one, reference, searches):
            left_out.append(why)
        else:
            everything.append(one)
    left_out = list(dict.fromkeys(left_out))  # once for all clusters
    selected = [one for one in everything if one.model in models]
    if left_out and not selected:
        raise UserError(left_out[0])
    for why in left_out:
        click.echo(f"left out: {why}", err=True)
    rows, choices = [], []
    for one in selected:
        others = [other for other in everything if other.cluster == one.cluster and other.model != one.model]
        for name in (name for name in searches if others or name not in NEEDS_OTHERS):
            scored = score(one, name, reference, others)
            rows += scored[0]
            choices += scored[1]
    if not choices:
        alone = f"{', '.join(searches)} learn from other models of the cluster, but there are none"
        why = alone if selected else "no step time on full nodes fits the batch size of a run"
        raise UserError(f"{folder}: nothing to compare: {why}")
    if output == "json":
        setting = {"reference": reference, "random": False, "versions": _versions(), **_sizes(selected)}
        print_json(
            {
                "configurations": [vars(row) for row in rows],
                "choices": [vars(choice) for choice in choices],
                "pooled": [vars(line) for line in pool(rows, choices)],
                "left_out": left_out,
                "setting": setting,
            }
        )
    else:
        _show(consoles()[0], choices, pool(rows, choices), reference)


def _sizes(problems: Sequence[Problem]) -> dict[str, object]:
    """The sizes of the comparison, with each model's target and the price and size of a node."""
    return {
        "problems": [
            {
                "model": one.model,
                "cluster": one.cluster,
                "configurations": len(one.nodes),
                "target": one.target.level,
                "higher_is_better": one.target.sign > 0,
                "devices_per_node": one.devices_per_node,
                "usd_per_node_hour": one.price.usd_per_node_hour,
            }
            for one in problems
        ]
    }


def _problems(
    folder: Folder, models: Sequence[str], clusters: Sequence[str], usd_per_node_hour: float | None
) -> list[Problem]:
    from mlcd_bench.scale import problem

    scored = (problem(folder, model, cluster, usd_per_node_hour) for cluster in clusters for model in models)
    return [one for one in scored if one is not None]


def _show(console: Console, choices: Sequence[Choice], pooled: Sequence[Pooled], reference: str) -> None:
    table = plain_table(
        ("MODEL", "CLUSTER", "SEARCH", "OBJECTIVE"), ("NODES", "BATCH", "ORACLE", "", "RATIO", "PROBES")
    )
    for i, choice in enumerate(choices):
        table.add_row(
            choice.model,
            choice.cluster,
            choice.search,
            choice.objective,
            str(choice.nodes),
            f"{choice.global_batch:,}",
            str(choice.oracle_nodes),
            f"{choice.oracle_global_batch:,}",
            f"{choice.ratio:.2f}",
            str(choice.probes),
            end_section=i + 1 < len(choices) and choices[i + 1].search != choice.search,
        )
    console.print(table)
    console.print()
    errors = ("MEDIAN", "P90", "COVERED")
    table = plain_table(("SEARCH",), ("ALL", *errors, "UNSEEN", *errors, "CHOICES", "RATIO P95", "MEAN"))
    for line in pooled:
        unseen = (line.unseen_median_error, line.unseen_p90_error, line.unseen_coverage)
        table.add_row(
            line.search,
            str(line.configurations),
            *(_percent(value) for value in (line.median_error, line.p90_error, line.coverage)),
            str(line.unseen),
            *(_percent(value) for value in unseen),
            str(line.choices),
            f"{line.p95_ratio:.2f}",
            f"{line.mean_ratio:.2f}",
        )
    console.print(table)
    versions = ", ".join(f"{name} {version}" for name, version in _versions().items())
    console.print(f"One earlier run, at the {reference} batch size. {RULES} {versions}.", style="dim", highlight=False)


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    from mlcd.core.version import VERSION

    return {"mlcd": VERSION, **{name: version(name) for name in ("numpy", "scipy", "kneed")}}
