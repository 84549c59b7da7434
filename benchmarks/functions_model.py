"""Predicted and measured epoch times on functions of this machine, like CE-scaling's figures 19 and 20 on Lambda.

python benchmarks/functions_model.py [--job lr-yfcc] [--epochs 3] [--home DIR]

A job is calibrated as by `mlcd train`: a few probes, on other allocations except by chance. Then some epochs run on
each of 16 allocations (functions x memory x storage). Their time, without the start, is compared with two predictions:
the calibrated model, and equation (3) with latency and bandwidth of single transfers. The median over the epochs
counts. Needs a quiet machine and some minutes.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import tempfile
from contextlib import closing
from importlib.metadata import version
from pathlib import Path

from mlcd.core.backend import Launch, Purpose
from mlcd.core.history import History
from mlcd.core.home import open_ledger
from mlcd.core.job import Goal, Job, Search, Target
from mlcd.core.ledger import Ledger
from mlcd.core.runs.run import start
from mlcd.planners.functions.epoch_model.epoch import EpochModel
from mlcd.planners.functions.nouns import Allocation, FunctionsTask, TrainEpochs, evidence_of, functions_task
from mlcd.planners.functions.search import measured_calibration
from mlcd.planners.functions.space import configuration, tariff_of
from mlcd.planners.functions.workload import STORAGES, Workload

JOBS = {
    "lr-yfcc": (Workload("lr", "yfcc", 24_000, 0.0, 0.0, 400, 0.01), 0.4),
    "lr-higgs": (Workload("lr", "higgs", 4_000_000, 0.0, 0.0, 100_000, 0.05), 0.64),
    "svm-yfcc": (Workload("svm", "yfcc", 24_000, 0.0, 0.0, 400, 0.01), 0.4),
    "mobilenet": (Workload("mobilenet", "images", 4_000, 0.0, 0.0, 64, 0.05), 0.2),
}
JUDGED = [(2, 700), (3, 500), (4, 400), (5, 600)]
"""(functions, memory) for each storage: between the probed ones, and within two cores."""


def job_of(name: str) -> Job:
    workload, loss = JOBS[name]
    serverless = FunctionsTask(workload, functions=(1, 6), memory_mb=(300, 1_769), storages=STORAGES, epochs=1.0)
    return Job(
        name,
        60.0 * workload.samples,
        Goal(),
        on="functions",
        search=Search(method="exact", earlier=False),
        dataset_samples=workload.samples,
        target=Target("loss", loss, at_least=False),
        ask=serverless,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--job", choices=JOBS, default="lr-yfcc")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--home", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["MLCD_HOME"] = str(given.home or scratch)
        with closing(open_ledger()) as ledger:
            judge(given.job, given.epochs, ledger)


def judge(name: str, epochs: int, ledger: Ledger) -> None:
    run = start(job_of(name), ledger)
    run.search()
    serverless = functions_task(run.job)
    assert serverless is not None
    history: History = run.book.account.history
    calibration = measured_calibration(serverless, history)
    assert calibration is not None
    model = EpochModel(serverless.workload, tariff_of(serverless), calibration)
    print(
        f"{name}: {serverless.workload.samples:,} samples, {serverless.workload.data_mb:.0f} MB, model "
        f"{serverless.workload.model_mb * 1e3:.3g} KB; {len(history.measurements)} probes, "
        f"spread {calibration.rel_error:.1%}; {epochs} epochs each; lithops {version('lithops')}, "
        f"Python {platform.python_version()}, {os.cpu_count()} cores"
    )
    print("allocation                      actual   model   error  eq. (3)   error   start   model")
    errors, literal_errors = [], []
    for storage in serverless.storages:
        for n, memory in JUDGED:
            where = Allocation(n, memory, storage)
            seen = measured(run.job, run.cloud.profiler, where, epochs)
            if not seen:
                print(f"{where!s:30} no epoch ended")
                continue
            actual_s = statistics.median(each.load_s + each.compute_s + each.sync_s for each in seen)
            start_s = statistics.median(each.start_s for each in seen)
            parts, letter = model.parts(where), model.literal(where)
            errors.append(parts.billed_s / actual_s - 1)
            literal_errors.append(letter.billed_s / actual_s - 1)
            print(
                f"{where!s:30} {actual_s:7.3f} {parts.billed_s:7.3f} {errors[-1]:+7.1%} {letter.billed_s:8.3f} "
                f"{literal_errors[-1]:+7.1%} {start_s:7.3f} {parts.start_s:7.3f}"
            )
    for what, found in (("calibrated model", errors), ("equation (3)", literal_errors)):
        sizes = sorted(abs(error) for error in found)
        print(f"{what}: {len(sizes)} allocations, median error {statistics.median(sizes):.1%}, largest {sizes[-1]:.1%}")
    print("the paper, on Lambda: 0.6 to 4.9 % over functions, 2.1 to 4.3 % over memory, S3 only")


def measured(job: Job, profiler: object, where: Allocation, epochs: int) -> list:
    serverless = functions_task(job)
    assert serverless is not None
    work = TrainEpochs(epochs)
    launch = Launch(
        f"judged-{where.functions}-{where.memory_mb}-{where.storage}-1",
        configuration(serverless, where, work),
        Purpose.RUN,
        float(serverless.workload.samples * epochs),
        300.0,
        0,
        work=work,
    )
    return list(evidence_of(profiler.measure(job, launch)).epochs)


if __name__ == "__main__":
    main()
