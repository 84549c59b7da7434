"""Is the load generator trustworthy? Its rates compared with wrk's, and its maximal rate.

    apt-get install wrk
    .venv/bin/python benchmarks/load_generator.py

Endpoints run in their own processes. Our generator and wrk alternate, so that other load on the machine affects both.
"""

from __future__ import annotations

import re
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import click
import numpy as np

from mlcd.clouds.load.generate import Arrivals, Closed, Open, Report, generate
from mlcd.clouds.load.http import Http, Request

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "clouds" / "load"))
from endpoint import endpoint

ENOUGH = 2_000
"""Required requests a second."""


def our_reports(url: str, arrivals: Arrivals, seconds: float) -> list[Report]:
    """All reports of a load."""
    reports: list[Report] = []
    with closing(generate(lambda: Http(Request(url)), arrivals)) as load:
        for report in load:
            reports.append(report)
            if report.elapsed_s >= seconds:
                break
    return reports


def our_rate(url: str, clients: int, seconds: int) -> float:
    """Answers a second in a closed loop."""
    last = our_reports(url, Closed(clients), seconds)[-1]
    return last.answered / last.elapsed_s


def wrk_rate(url: str, clients: int, seconds: int) -> float:
    """The same by wrk."""
    command = ["wrk", "-t1", f"-c{clients}", f"-d{seconds}", url]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.search(r"Requests/sec:\s*([\d.]+)", said)
    if found is None:
        raise click.ClickException(f"wrk said no rate: {said}")
    return float(found[1])


def alternating_rates(works: list[Callable[[], float]], repeats: int) -> list[list[float]]:
    """Both rates, alternating, for each repeat."""
    return [list(each) for each in zip(*[[work() for work in works] for _ in range(repeats)], strict=True)]


@click.command()
@click.option("--seconds", default=3, show_default=True, help="Of each load.")
@click.option("--repeats", default=5, show_default=True)
def main(seconds: int, repeats: int) -> None:
    """Print the ratio of our rate to that of wrk, and the most requests a second."""
    if shutil.which("wrk") is None:
        raise click.ClickException("wrk is not installed: apt-get install wrk")
    click.echo("CLIENTS  DELAY    OURS/S     WRK/S   RATIO   SPREAD")
    for clients, delay_ms in ((4, 50), (16, 20), (32, 20), (64, 50)):
        with endpoint(delay_ms) as url:
            mine, theirs = alternating_rates(
                [lambda: our_rate(url, clients, seconds), lambda: wrk_rate(url, clients, seconds)],  # noqa: B023
                repeats,
            )
        ratios = [a / b for a, b in zip(mine, theirs, strict=True)]
        click.echo(
            f"{clients:7d}  {delay_ms:2d} ms  {statistics.median(mine):8.1f}  {statistics.median(theirs):8.1f}"
            f"  {statistics.median(ratios):6.3f}  {min(ratios):.3f}-{max(ratios):.3f}"
        )
    with endpoint(0) as url:
        closed, most = alternating_rates(
            [lambda: our_rate(url, 32, seconds), lambda: wrk_rate(url, 32, seconds)], repeats
        )
        click.echo(f"\nto an endpoint that does nothing, 32 clients: {min(closed):,.0f}-{max(closed):,.0f} a second")
        click.echo(f"the same by wrk: {min(most):,.0f}-{max(most):,.0f} a second")
        reports = our_reports(url, Open(ENOUGH, seed=0), seconds)
    # Without the first half second, in which connections are made: profilers drop it too.
    seen = np.concatenate([report.window.latencies_s for report in reports[2:]])
    rate, late = reports[-1].answered / reports[-1].elapsed_s, reports[-1].late
    quantiles = ", ".join(f"p{q:g} {1e3 * np.percentile(seen, q):.2f} ms" for q in (50, 95, 99))
    click.echo(f"open loop at {ENOUGH:,} a second: {rate:,.0f} answered, {late} late, {quantiles}")
    reached = min(closed) >= ENOUGH
    click.echo(f"at least {ENOUGH:,} requests a second: {'yes' if reached else 'NO'}")
    sys.exit(0 if reached else 1)


if __name__ == "__main__":
    main()
