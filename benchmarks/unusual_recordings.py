"""Net value as shipped, and other methods under the same guarantee, on made recordings that are unlike real ones.

python benchmarks/unusual_recordings.py [--quick] [--kinds random,step] [--seeds 6] [--large] [--list]

29 kinds of recordings (`--list` names them; `unusual/made_recordings.py` makes them). A seed draws one recording of
each kind and the noise of its probes, 3 %. On each, 'fastest' and 'cheapest': without a limit, with one at 1.2, 1.5 and
3 times the least possible, and with both at 1.5 and 3 times what one good configuration takes. Problems where no single
probe could be certified, even of the best configuration, are left out. Nothing is rented.

Net value has early looks and rounds, as shipped; the others, and net value again, make whole probes one at a time.
'Better by 5 %' and 'worse by 5 %' count refusals: a choice is better than a refusal. The other columns cover only runs
with a choice, so a method that refuses hard problems looks better in them.

It takes about ten minutes on one core, `--quick` half a minute, `--large` one minute. The exit code is 1 if a
run crashed, or passed its limit.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import exp, inf

import numpy as np
import scipy
import sklearn
from unusual.made_recordings import HELD_OUT, KINDS, LARGE, LOOKED_AT, made

from mlcd.clouds.recording import Recording
from mlcd.core.configuration import Configuration, Space
from mlcd.core.job import Goal, Objective
from mlcd.core.measurement import Z
from mlcd.core.version import VERSION
from mlcd_bench.contest import Crash, Task, contest
from mlcd_bench.problems import Problem, Scenario, job_of, training_hours
from mlcd_bench.train import Result, Setting

WHOLE_PROBES = Setting(noise=0.03)
SHIPS, ITSELF = "net-value", "net-value, whole probes"
ENTRANTS = {
    SHIPS: ("net-value+guard", replace(WHOLE_PROBES, early_look=0.3, parallel=4)),
    ITSELF: ("net-value+guard", WHOLE_PROBES),
    **{
        name: (f"{name}+guard", WHOLE_PROBES)
        for name in ("cherrypick-improved", "heterbo", "ernest", "one-node-linear", "random")
    },
}
QUICK = ("short", "oneok", "random", "flat", "worse", "onepoint", "longprobe", "oomlinear")
FACTORS, LARGE_FACTORS = (1.2, 1.5, 3.0), (1.5, 3.0)
CLEARLY = 0.95
"""Better by 5 %."""


@dataclass(frozen=True)
class PosedProblem:
    """A goal on a made recording."""

    kind: str
    seed: int
    goal: str
    problem: Problem


@dataclass(frozen=True)
class Run:
    """A method's result: total over oracle if it chose; whether it passed a limit."""

    posed: PosedProblem
    ratio: float | None
    probes: int
    certified: bool
    over: bool

    @property
    def place(self) -> float:
        """The ratio; a refusal counts as the worst."""
        return inf if self.ratio is None else self.ratio


def make_problems(kinds: Sequence[str], seeds: Sequence[int]) -> list[PosedProblem]:
    """Every problem where one probe of some configuration could be certified."""
    found = []
    for kind in kinds:
        for seed in seeds:
            recording = made(kind, seed)
            space = recording.space
            for name, goal in _goals(recording, LARGE_FACTORS if kind in LARGE else FACTORS):
                one_limit = (goal.deadline_s is None) != (goal.budget_usd is None)
                if kind not in LARGE or one_limit:
                    problem = _problem(recording, space, goal)
                    found += [PosedProblem(kind, seed, name, problem)] if problem is not None else []
    return found


def _goals(recording: Recording, factors: Sequence[float]) -> Iterator[tuple[str, Goal]]:
    totals = [(hours * 3_600, hours * usd_per_hour) for hours, usd_per_hour, *_ in _possible(recording)]
    least_s, least_usd = min(seconds for seconds, _ in totals), min(usd for _, usd in totals)
    good_s, good_usd = sorted(totals, key=lambda total: total[0] * total[1])[len(totals) // 4]
    yield "fastest", Goal(Objective.FASTEST)
    yield "cheapest", Goal(Objective.CHEAPEST)
    for factor in factors:
        yield f"cheapest by a deadline x{factor:g}", Goal(Objective.CHEAPEST, deadline_s=factor * least_s)
        yield f"fastest within a budget x{factor:g}", Goal(Objective.FASTEST, budget_usd=factor * least_usd)
    for factor in factors[-2:]:
        for objective in (Objective.FASTEST, Objective.CHEAPEST):
            yield f"{objective.value} within both x{factor:g}", Goal(objective, factor * good_usd, factor * good_s)


def _problem(recording: Recording, space: Space, goal: Goal) -> Problem | None:
    """None if no single probe can be certified. The scenario only gives the objective."""
    cheapest = goal.objective is Objective.CHEAPEST
    slower = exp(Z * WHOLE_PROBES.noise)
    within, certifiable = [], False
    for hours, usd_per_hour, where in _possible(recording):
        usd, (probe_s, probe_usd) = hours * usd_per_hour, space.worst_probe(where)
        if goal.allows(usd, hours * 3_600):
            within.append((hours, usd))
            certifiable |= goal.allows(usd * slower + probe_usd, hours * 3_600 * slower + probe_s)
    if not certifiable:
        return None
    hours, usd = min(within, key=lambda total: total[::-1] if cheapest else total)
    scenario = Scenario.CHEAPEST_BY_DEADLINE if cheapest else Scenario.FASTEST
    job = replace(job_of(recording), goal=goal)
    return Problem(recording, space, job, scenario, None, None, oracle_usd=usd, oracle_hours=hours)


def _possible(recording: Recording) -> Iterator[tuple[float, float, Configuration]]:
    """Hours and price of training, and the configuration."""
    for where in recording.points:
        if (hours := training_hours(recording, where)) is not None:
            yield hours, where.usd_per_hour, where


def run_method(entrant: str, problems: Sequence[PosedProblem], processes: int) -> list[Run]:
    """Run one method on every problem, in order; a crash ends the benchmark."""
    method, setting = ENTRANTS[entrant]
    todo = [Task(i, method, each.seed) for i, each in enumerate(problems)]
    runs: dict[int, Run] = {}
    for task, outcome in contest([each.problem for each in problems], todo, setting, processes):
        if isinstance(outcome, Crash):
            sys.exit(f"crashed: {outcome}")
        runs[task.problem] = _run(problems[task.problem], outcome)
    return [runs[i] for i in range(len(problems))]


def _run(where: PosedProblem, result: Result) -> Run:
    over = not where.problem.job.goal.allows(result.total_usd, result.total_hours * 3_600)
    return Run(where, result.ratio, len(result.probes), result.certified, over)


def summary_figures(runs: Sequence[Run]) -> str:
    """Runs, share certified, and of runs with a choice: median, mean, p90 and worst of total over oracle."""
    ratios = np.array([run.ratio for run in runs if run.ratio is not None])
    certified = f"{len(runs):,} | {np.mean([run.certified for run in runs]):.0%}"
    if not ratios.size:
        return f"{certified} | - | - | - | -"
    return (
        f"{certified} | {np.median(ratios):.2f} | {ratios.mean():.2f} | {np.quantile(ratios, 0.9):.2f} "
        f"| {ratios.max():,.2f}"
    )


COLUMNS = "problems | certified | median | mean | 90 % | worst"


def head(*names: str) -> None:
    columns = " | ".join(names)
    print(f"\n| {columns} |\n|{'---|' * (columns.count('|') + 1)}")


def print_net_value(runs: Sequence[Run]) -> None:
    """Print the totals, both halves, each seed, goal and kind, and the worst cases."""
    head("net-value, as it ships", COLUMNS, "over a limit")
    parts = [("all", list(KINDS | LARGE)), ("looked at", list(LOOKED_AT)), ("held out", list(HELD_OUT))]
    groups = [(name, [run for run in runs if run.posed.kind in kinds]) for name, kinds in parts]
    for seed in sorted({run.posed.seed for run in runs}):
        groups.append((f"seed {seed}", [run for run in runs if run.posed.seed == seed]))
    for goal in dict.fromkeys(run.posed.goal for run in runs):
        groups.append((goal, [run for run in runs if run.posed.goal == goal]))
    for kind in dict.fromkeys(run.posed.kind for run in runs):
        groups.append((f"{kind}: {(KINDS | LARGE)[kind].tells}", [run for run in runs if run.posed.kind == kind]))
    for name, group in groups:
        if group:
            print(f"| {name} | {summary_figures(group)} | {sum(run.over for run in group)} |")
    print("\nits worst:")
    for run in sorted((run for run in runs if run.ratio is not None), key=lambda run: -run.place)[:5]:
        where = f"{run.posed.kind}, seed {run.posed.seed}, {run.posed.goal}"
        print(f"  {run.ratio:.1f} after {run.probes} probes: {where}")


def print_rivals(ships: Sequence[Run], problems: Sequence[PosedProblem], processes: int) -> bool:
    """Print a row for each method on the same problems, and where others were better; whether any passed a limit."""
    head("method", COLUMNS, "over a limit", "better than net-value by 5 %", "worse by 5 %", "seconds")
    own = {id(run.posed): run for run in ships}
    lost: dict[str, int] = {}
    over = False
    for entrant in ENTRANTS:
        started = time.perf_counter()
        runs = [own[id(each)] for each in problems] if entrant == SHIPS else run_method(entrant, problems, processes)
        took = time.perf_counter() - started
        better = [run for run in runs if run.place < CLEARLY * own[id(run.posed)].place]
        worse = [run for run in runs if CLEARLY * run.place > own[id(run.posed)].place]
        cells = "| | | |" if entrant == SHIPS else f"| {len(better)} | {len(worse)} | {took:.0f} |"
        print(f"| {entrant} | {summary_figures(runs)} | {sum(run.over for run in runs)} {cells}", flush=True)
        over |= any(run.over for run in runs)
        for run in better if entrant != ITSELF else []:
            lost[run.posed.kind] = lost.get(run.posed.kind, 0) + 1
    where = ", ".join(f"{kind} {times}" for kind, times in sorted(lost.items(), key=lambda item: -item[1]))
    print(f"\nrivals better by 5 %, by kind: {where or 'nowhere'}")
    return over


def main() -> int:
    given = _arguments()
    if given.list:
        print("\n".join(f"{name:<12}{kind.tells}" for name, kind in (KINDS | LARGE).items()))
        return 0
    kinds = given.kinds or (list(LARGE) if given.large else list(QUICK) if given.quick else list(KINDS))
    seeds = range(1 if given.quick else given.seeds)
    versions = f"mlcd {VERSION}, numpy {np.__version__}, scipy {scipy.__version__}, scikit-learn {sklearn.__version__}"
    size = f"{len(kinds)} kinds, seeds 0..{seeds[-1]}"
    factors = ", ".join(f"{factor:g}" for factor in (LARGE_FACTORS if given.large else FACTORS))
    print(f"{versions}, Python {platform.python_version()}; {size}; noise {WHOLE_PROBES.noise:.0%}, factors {factors}")
    started = time.perf_counter()
    problems = make_problems(kinds, seeds)
    ships = run_method(SHIPS, problems, given.processes)
    print_net_value(ships)
    print(f"{time.perf_counter() - started:.0f} s", flush=True)
    over = any(run.over for run in ships)
    beside = [each for each in problems if each.kind not in LARGE]
    if beside:
        over |= print_rivals(ships, beside, given.processes)
    return 1 if over else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"one seed of {', '.join(QUICK)}")
    parser.add_argument("--kinds", type=_kinds, help="only these, with commas between them")
    parser.add_argument("--seeds", type=_number, default=6, help="how many, from 0; default 6")
    parser.add_argument("--large", action="store_true", help="200 types x 256 nodes instead, one limit, no others")
    parser.add_argument("--processes", type=_number, default=1)
    parser.add_argument("--list", action="store_true", help="name the kinds, and play nothing")
    return parser.parse_args()


def _number(written: str) -> int:
    if (number := int(written)) < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


def _kinds(written: str) -> list[str]:
    kinds = [name.strip() for name in written.split(",")]
    for name in kinds:
        if name not in KINDS | LARGE:
            raise argparse.ArgumentTypeError(f"no kind '{name}'; --list names them")
    return kinds


if __name__ == "__main__":
    sys.exit(main())
