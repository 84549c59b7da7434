"""Attacks on labels, comparisons and logs of runs."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from attacks.jobs import JOB
from attacks.overuse import MODEST
from attacks.target import Finding, Target, within

SLOW_LOG = """\
  python3 - <<'END'
  print("@mlcd t=1 samples=" * 20_000)
  print("\\n" * 1_000_000 + "\\x1b[1;" * 100_000 + "\\r" * 100_000)
  print("WRITTEN", flush=True)
  END
  sleep 60"""
SEARCHES, SLOW_S = 6, 2.0
"""Simultaneous searches; and how long another member's request may take meanwhile."""


def labels_of_others(at: Target) -> Finding:
    """Label, archive and compare runs of others or unknown runs; oversized labels and labels with scripts."""
    theirs, mine = (str(at.submit(who, MODEST).json()["run"]) for who in ("victor", "mallory"))
    wrong: list[dict[str, Any]] = [
        {"note": "x" * 1_000_000},
        {"tags": [f"tag-{n}" for n in range(10_000)]},
        {"tags": ["<script>alert(1)</script>"]},
        {"project": "a\nb"},
    ]
    with at.client("mallory") as client:
        others = [client.patch(f"/runs/{theirs}/labels", json=each).status_code for each in ({"note": "mine"}, *wrong)]
        own = [client.patch(f"/runs/{mine}/labels", json=each).status_code for each in wrong]
        asked = (f"{mine}," * 500, f"{mine},../../etc/passwd", f"{mine},' OR 1=1 --", mine)
        compared = [client.get("/compare", params={"runs": each}).status_code for each in asked]
        summary = client.get(f"/runs/{theirs}").json()["summary"]
    kept = [summary["project"], *summary["tags"], summary["note"]]
    refused = all(400 <= each < 500 for each in (*others, *own, *compared))
    words = f"another's run: {others}; one's own, without measure: {own}; compared: {compared}; kept: {kept}"
    return Finding(refused and not any(kept), words)


def slow_log(at: Target) -> Finding:
    """A job writes a log that is slow to search; its owner searches it again and again while another member works."""
    answer = at.submit("mallory", JOB.format(name="slow-log", script=SLOW_LOG, more=""))
    answer.raise_for_status()
    run = str(answer.json()["run"])
    written = within(90, lambda: _end_of_log(at, run).endswith("WRITTEN"), 1.0)

    def search(number: int) -> int:
        with at.client("mallory") as client:
            return client.get(f"/runs/{run}/logs/find", params={"text": f"nowhere-{number}"}).status_code

    longest_s = 0.0
    with ThreadPoolExecutor(SEARCHES) as crowd, at.client("victor") as client:
        searches = [crowd.submit(search, number) for number in range(SEARCHES)]
        while not all(each.done() for each in searches):
            began_s = time.monotonic()
            client.get("/me").raise_for_status()
            longest_s = max(longest_s, time.monotonic() - began_s)
    at.down(run)
    if not written:
        return Finding(False, f"the job of {run} did not get as far as writing")
    answers = sorted({each.result() for each in searches})
    words = f"{SEARCHES} searches at once answered {answers}; another's question took {longest_s:.2f} s at most"
    return Finding(longest_s < SLOW_S, words)


def _end_of_log(at: Target, run: str) -> str:
    with at.client("mallory") as client:
        answer = client.get(f"/runs/{run}/logs/lines")
    lines = answer.json()["lines"] if answer.status_code == 200 else []
    return str(lines[-1]["text"]) if lines else ""
