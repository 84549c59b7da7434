"""Do certificates hold if the run differs from the probe, as in reality?

python benchmarks/certificates.py [--searches 20000] [--row NAME]... [--recordings DIR...] [--relaxations]

An independent simulator replays recordings so that every launch, probe or run, has its own conditions (`weather/`).
Each search, and the run that follows it, takes the product's own path: net value with early looks and rounds, the
guard, and steering in the run. The method knows of 3 % noise only. Problems: every recording,
cheapest by a deadline and fastest within a budget, limits of 1.02 to 2 times the least possible.

A certificate is broken if its job was ended at the limit, unfinished. A refusal is wrong if an oracle could have
certified: one whole probe of the right configuration, and all of the work at three standard errors of 3 %.
`--relaxations` starts a new search with the first relaxation that a refusal names. Totals are over an oracle that
knows every rate and probes nothing.

About eight searches a second on one core. The exit code is 1 if a run passed its limit.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import platform
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path

import numpy as np
import scipy
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]
from weather.conditions import ALL, ROWS
from weather.table import markdown, promises, refusals, ways_out
from weather.trial import Setting, Task, Trial, run_trial, tasks

from mlcd.clouds.recording import Recording, load_recording
from mlcd.core.version import VERSION
from mlcd_bench.problems import Problem, Scenario
from mlcd_bench.problems import problems as problems_of

FACTORS = (1.02, 1.05, 1.1, 1.15, 1.2, 1.3, 1.5, 2.0)
SCENARIOS = (Scenario.CHEAPEST_BY_DEADLINE, Scenario.FASTEST_WITHIN_BUDGET)
SHARED = Path("../shared/data/train")

_PROBLEMS: Sequence[Problem] = ()
_SETTING = Setting()
"""The setting of a worker process, set once in each."""


def _begin(problems: Sequence[Problem], setting: Setting) -> None:
    global _PROBLEMS, _SETTING
    _PROBLEMS, _SETTING = problems, setting
    threadpool_limits(1)  # the matrices are tiny
    if multiprocessing.parent_process() is not None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _one(task: Task) -> Trial:
    return run_trial(task, _PROBLEMS, _SETTING)


def run_all(todo: Sequence[Task], problems: Sequence[Problem], setting: Setting, processes: int) -> Iterator[Trial]:
    """Run every search, in order."""
    if processes == 1:
        _begin(problems, setting)
        yield from map(_one, todo)
        return
    with ProcessPoolExecutor(processes, initializer=_begin, initargs=(problems, setting)) as pool:
        yield from pool.map(_one, todo, chunksize=20)


def recordings_of(folders: Sequence[Path]) -> list[Recording]:
    """The recordings in these folders, or in their subfolders."""
    found = []
    for folder in folders:
        inside = [folder] if (folder / "recording.yaml").is_file() else sorted(folder.iterdir())
        found += [load_recording(each) for each in inside if (each / "recording.yaml").is_file()]
    return found


def print_tables(trials: Sequence[Trial], *, relaxations: bool) -> None:
    """Print the tables, a line for each kind of weather."""
    by_row = {row: [trial for trial in trials if trial.row == row] for row in ALL}
    by_row = {row: each for row, each in by_row.items() if each}
    tables = [promises, refusals, *([ways_out] if relaxations else [])]
    for table in tables:
        print("\n" + markdown(table(row, each) for row, each in by_row.items()), flush=True)


def main() -> int:
    given = _arguments()
    rows = given.row or list(ROWS)
    recordings = recordings_of(given.recordings)
    if not recordings:
        print(f"no recordings in {', '.join(map(str, given.recordings))}; name some: --recordings DIR", file=sys.stderr)
        return 2
    problems = problems_of(recordings, SCENARIOS, given.factors)
    each = -(-given.searches // len(rows))
    setting = Setting(given.checkpoints, not given.no_max_probe, given.relaxations)
    print(_heading(given, rows, recordings, problems, each, setting))
    trials: list[Trial] = []
    started = time.perf_counter()
    todo = list(tasks(rows, len(problems), each, given.first_seed))
    for trial in run_all(todo, problems, setting, given.processes):
        trials.append(trial)
        if len(trials) % 50 == 0 and sys.stderr.isatty():
            print(f"\r{len(trials):,} of {each * len(rows):,}", end="", file=sys.stderr, flush=True)
        if len(trials) % each == 0 and given.follow:
            print_tables(trials[-each:], relaxations=setting.relaxations)
    took = time.perf_counter() - started
    print(f"\n{len(trials):,} searches in {took:.0f} s, {1_000 * took / len(trials):.0f} ms each")
    for file in given.add:
        trials += [Trial(**one) for one in json.loads(file.read_text(encoding="utf-8"))]
    print_tables(trials, relaxations=setting.relaxations)
    if given.out is not None:
        given.out.write_text(json.dumps([asdict(trial) for trial in trials]), encoding="utf-8")
    return 1 if any(trial.over for trial in trials) else 0


def _heading(
    given: argparse.Namespace,
    rows: Sequence[str],
    recordings: Sequence[Recording],
    problems: Sequence[Problem],
    each: int,
    setting: Setting,
) -> str:
    versions = f"mlcd {VERSION}, numpy {np.__version__}, scipy {scipy.__version__}, Python {platform.python_version()}"
    size = f"{len(recordings)} recordings, {len(problems)} problems, {len(rows)} rows of {each:,} searches"
    factors = ", ".join(f"{factor:g}" for factor in given.factors)
    last_seed = given.first_seed + (each - 1) // len(problems)
    return f"{versions}; {size}, seeds {given.first_seed}..{last_seed}; limit factors {factors}; {setting}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--searches", type=int, default=20_000, help="in all, the same number for each row")
    parser.add_argument("--row", action="append", choices=list(ALL), help="only this; may be given again")
    parser.add_argument("--recordings", type=Path, nargs="+", default=[SHARED], help=f"folders; default {SHARED}")
    parser.add_argument("--factors", type=float, nargs="+", default=list(FACTORS), help="limits over the possible")
    parser.add_argument("--checkpoints", action="store_true", help="the job saves its work")
    parser.add_argument("--no-max-probe", action="store_true", help="without the usual limit on the price of a probe")
    parser.add_argument("--relaxations", action="store_true", help="search again with the way out that a refusal names")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--follow", action="store_true", help="print each row as it is done, too")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--add", type=Path, nargs="+", default=[], help="searches that were made before, of --out")
    parser.add_argument("--out", type=Path, help="every search, as JSON")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
