"""Against a real endpoint in its own process: the rates of `wrk`, and the stalls that it hides."""

from __future__ import annotations

import re
import shutil
import subprocess
from contextlib import closing

import numpy as np
import pytest
from endpoint import endpoint

from mlcd.clouds.load.generate import Arrivals, Closed, Open, Report, generate
from mlcd.clouds.load.http import Http, Request

pytestmark = pytest.mark.live

CLIENTS, DELAY_MS, SECONDS = 8, 50.0, 3


def loaded(url: str, arrivals: Arrivals, *, seconds: float = 0.0, answers: int = 0) -> list[Report]:
    """Until both are over."""
    reports: list[Report] = []
    with closing(generate(lambda: Http(Request(url)), arrivals, every_s=0.25)) as load:
        for report in load:
            reports.append(report)
            if report.elapsed_s >= seconds and report.answered >= answers:
                break
    return reports


@pytest.mark.skipif(shutil.which("wrk") is None, reason="wrk is not installed: apt-get install wrk")
def test_at_a_fixed_concurrency_the_rate_agrees_with_that_of_wrk() -> None:
    for _ in range(10):  # on a busy machine one of the two may have had less of it
        ours, theirs = both_rates()
        if agree := ours == pytest.approx(theirs, rel=0.10):
            break
    assert agree, f"{ours:.0f} and {theirs:.0f} answers per second"


def both_rates() -> tuple[float, float]:
    """Ours and that of wrk, at the same time: whatever else this machine does slows down both."""
    command = ["wrk", "-t1", f"-c{CLIENTS}", f"-d{SECONDS}"]
    # The endpoint is idle but for its delay.
    with endpoint(DELAY_MS) as url, subprocess.Popen([*command, url], stdout=subprocess.PIPE, text=True) as wrk:
        reports = loaded(url, Closed(CLIENTS), seconds=SECONDS)
        said, _ = wrk.communicate()
    found = re.search(r"Requests/sec:\s*([\d.]+)", said)
    assert found is not None, said
    ours = reports[-1].answered / reports[-1].elapsed_s
    assert ours <= CLIENTS / (DELAY_MS / 1e3)  # no load is faster than Little's law
    assert sum(report.window.failures for report in reports) == 0
    return ours, float(found[1])


def test_an_open_loop_shows_the_stall_of_a_real_server() -> None:
    stall_at, stall_s, rate = 200, 0.5, 200.0
    with endpoint(2.0, stall_at, 1e3 * stall_s) as url:
        reports = loaded(url, Open(rate, seed=3), answers=400)
    seen = np.concatenate([report.window.latencies_s for report in reports])
    # About 10 of 400 were due in the first 50 ms of the stall, and waited for the rest of it. A busy machine adds.
    assert np.quantile(seen, 0.99) > stall_s - 0.1
    assert np.count_nonzero(seen > stall_s / 2) > 0.5 * rate * stall_s / 2
    assert sum(report.window.failures for report in reports) == 0
