"""Export of a plan as JSON that configures AWS Lambda functions and the storage that they share.

Wu et al. (CE-scaling, IPDPS 2023), section V-A: 'outputs a configuration file in JSON, which is then used by Lambda to
invoke functions and select external storage services'. Fields of AWS are spelled as CreateFunction and
PutFunctionConcurrency spell them; what only the user knows (Role, Code, Runtime, Handler) is not invented.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

from mlcd.core.backend import Provenance
from mlcd.core.errors import WrongState
from mlcd.core.ledger import Account
from mlcd.planners.functions.nouns import Allocation, FunctionsTask, Stage, StagePlan, plan_of
from mlcd.planners.functions.workload import LONGEST_CALL_S
from mlcd.reports.functions.document import prices_of
from mlcd.reports.functions.rows import epoch_rows
from mlcd.reports.functions.words import basis_words, chosen_plan
from mlcd.reports.run_document.tune import RunWorkload

PATIENCE = 3
"""Timeout of a function as a multiple of the expected length of an epoch."""
DEFAULT_CONCURRENCY = 1_000
"""Concurrent functions that a new AWS account has in a region."""
UNRESERVED = 100
"""The part of these that AWS keeps for functions without a reservation."""
MOST_LETTERS = 64
"""Most characters of a function's name."""


@dataclass(frozen=True)
class _Segment:
    """Consecutive epochs on one allocation. `seconds`, `usd`: totals over these epochs and all trials."""

    stage: Stage
    first_epoch: int
    allocation: Allocation
    seconds: float
    usd: float


def lambda_configuration(name: str, account: Account) -> dict[str, Any]:
    """The functions to create, and the segments to run on them, one after the other."""
    task, decision = account.job.ask, account.decision
    if not isinstance(task, FunctionsTask):
        raise WrongState(
            f"run '{name}' is not on functions: export it with --to skypilot, kserve, triton, mlserver or compose"
        )
    plan = chosen_plan(decision) if decision is not None else None
    if decision is None or plan is None:
        why = f": {decision.binding or decision.because}" if decision is not None else " yet"
        raise WrongState(f"run '{name}' has no plan{why}; there is nothing to export")
    ran = _ran(account)
    segments = ran or _planned(plan)
    described = [_segment(name, task, each) for each in segments]
    tariff = task.tariff
    return {
        "run": name,
        "source": str(account.provenance),
        "from": "run" if ran else "plan",
        "numbers": _run_words(account) if ran else basis_words(plan_of(decision).calibration, account.provenance),
        "region": tariff.region if tariff is not None else "",
        "method": plan.method,
        "workload": RunWorkload.model_validate(task.workload).model_dump(),
        "functions": _functions(described),
        "segments": described,
        "expected": {"seconds": sum(each.seconds for each in segments), "usd": sum(each.usd for each in segments)},
        "prices": prices_of(tariff).model_dump(mode="json") if tariff is not None else None,
    }


def _run_words(account: Account) -> str:
    if account.provenance is not Provenance.LIVE:
        return f"as the {account.provenance} run went, not measured"
    if account.job.on == "functions":
        return "measured on this machine; the costs are AWS's list prices for it, and nothing was billed"
    return "measured as it ran; the costs are list prices for what was counted"


def _planned(plan: StagePlan) -> list[_Segment]:
    segments, done = [], 0
    for each in plan.stages:
        segments.append(_Segment(each.stage, done + 1, each.allocation, each.seconds, each.usd))
        done += each.stage.epochs
    return segments


def _ran(account: Account) -> list[_Segment]:
    """Of a training run that has ended: the allocations as the scheduler chose them, epochs alike together."""
    if account.ended is None or (isinstance(account.job.ask, FunctionsTask) and account.job.ask.tuning is not None):
        return []
    done = [(r.allocation, r.epoch) for r in epoch_rows(account) if r.allocation is not None and r.epoch is not None]
    segments = []
    for allocation, together in groupby(done, key=itemgetter(0)):
        epochs = [epoch for _, epoch in together]
        seconds, usd = sum(each.seconds for each in epochs), sum(each.usd for each in epochs)
        segments.append(_Segment(Stage(1, len(epochs)), epochs[0].number, allocation, seconds, usd))
    return segments


def _segment(run: str, task: FunctionsTask, segment: _Segment) -> dict[str, Any]:
    allocation, stage = segment.allocation, segment.stage
    at_once = task.trials_at_once(allocation, stage.trials)
    epoch_s = segment.seconds / stage.epochs / math.ceil(stage.trials / at_once)
    wanted, most = allocation.functions * at_once, (task.concurrency or DEFAULT_CONCURRENCY) - UNRESERVED
    notes = []
    if wanted > most:
        notes.append(f"{wanted:,} functions at once are more than {most:,}, what an account can reserve: none is")
    if epoch_s > LONGEST_CALL_S:
        notes.append(
            f"an epoch takes {epoch_s:,.0f} s and a function lives {LONGEST_CALL_S:.0f} s: it has to be resumed"
        )
    return {
        "FunctionName": _function_name(run, allocation.memory_mb),
        "MemorySize": allocation.memory_mb,
        "Timeout": min(int(LONGEST_CALL_S), max(1, math.ceil(PATIENCE * epoch_s))),
        "ReservedConcurrentExecutions": wanted if wanted <= most else None,
        "functions": allocation.functions,
        "trials": stage.trials,
        "trials_at_once": at_once,
        "epochs": stage.epochs,
        "first_epoch": segment.first_epoch,
        "storage": _storage(run, task, allocation.storage),
        "expected": {"epoch_s": epoch_s, "seconds": segment.seconds, "usd": segment.usd},
        "notes": notes,
    }


def _functions(segments: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One for each memory size, with the longest time that any of its segments may take."""
    by_name: dict[str, dict[str, Any]] = {}
    for each in segments:
        name = each["FunctionName"]
        longest = max(each["Timeout"], by_name.get(name, each)["Timeout"])
        by_name[name] = {"FunctionName": name, "MemorySize": each["MemorySize"], "Timeout": longest}
    return list(by_name.values())


def _storage(run: str, task: FunctionsTask, kind: str) -> dict[str, Any]:
    rates = task.tariff.storages if task.tariff is not None else ()
    rate = next((rate for rate in rates if rate.name == kind), None)
    largest = rate.largest_mb if rate is not None and math.isfinite(rate.largest_mb) else None
    return {
        "kind": kind,
        "endpoint": task.endpoints.get(kind),
        "prefix": f"{run}/",
        "aggregates": rate is not None and rate.aggregates,
        "largest_object_mb": largest,
    }


def _function_name(run: str, memory_mb: int) -> str:
    """Letters, digits, hyphens and underscores: 'mlcd-higgs-1-512mb'."""
    end = f"-{memory_mb}mb"
    safe = re.sub(r"[^A-Za-z0-9_-]+", "-", f"mlcd-{run}").strip("-")
    return f"{safe[: MOST_LETTERS - len(end)].rstrip('-')}{end}"
