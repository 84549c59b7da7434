"""Attacks of a hostile member with the role runner on a real `mlcd service`: which ones succeed?

python benchmarks/attack.py [--only NAME ...]        # as root for jobs on `local`; about five minutes

Everything runs on loopback in its own folders, is bounded in number and time, and is deleted at the end. One line for
each attack: held, or GOT THROUGH with the evidence. The exit code is 1 if any got through.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

from attacks import jobs, operators, overuse, requests, runs, sign_in
from attacks.target import Finding, Target, target

ATTACKS: dict[str, Callable[[Target], Finding]] = {
    "secrets of the service, read by a job": jobs.secrets_of_the_service,
    "the service's environment, printed by a job": jobs.environment_of_the_service,
    "a regular expression that takes for ever": jobs.regular_expression,
    "every slot of the workers": overuse.every_slot,
    "an endless queue": overuse.endless_queue,
    "a model that asks for gigabytes": overuse.upload_bomb,
    "one budget, 50 starts at once": overuse.one_budget_many_starts,
    "slow connections": overuse.slow_connections,
    "requests of other sites": requests.other_sites,
    "scripts in names": requests.scripts_in_names,
    "SQL in names": requests.sql_in_names,
    "paths in names": requests.paths_in_names,
    "labels of others": runs.labels_of_others,
    "a log that is slow to read": runs.slow_log,
    "metrics without a token": operators.metrics_without_a_token,
    "metrics without an end": operators.endless_metrics,
    "forged lines of the log": operators.forged_log_lines,
    "the audit of others": operators.audit_of_others,
    "news to anywhere": operators.news_to_anywhere,
    "a token that grows": operators.tokens_that_grow,
    "sign-in at a provider": sign_in.sign_ins,
    "a database that is killed": requests.database_away,
}


def main() -> int:
    """Run all attacks, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="attacks that have one of these words in their name")
    only = parser.parse_args().only
    chosen = {name: attack for name, attack in ATTACKS.items() if not only or any(word in name for word in only)}
    held = True
    with target() as at:
        for name, attack in chosen.items():
            began = time.monotonic()
            finding = _result(attack, at)
            held &= finding.held
            mark = "held       " if finding.held else "GOT THROUGH"
            print(f"{mark}  {name} ({time.monotonic() - began:.0f} s): {finding.evidence}", flush=True)
    return 0 if held else 1


def _result(attack: Callable[[Target], Finding], at: Target) -> Finding:
    """The result of an attack. An attack that could not be run proves nothing, so it counts as successful."""
    try:
        return attack(at)
    except Exception as error:
        return Finding(False, f"not tried to its end: {type(error).__name__}: {str(error)[:200]}")


if __name__ == "__main__":
    sys.exit(main())
