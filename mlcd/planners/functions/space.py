"""What may be allocated to a job on functions, as configurations that can be paid for; and which of them are probed."""

from __future__ import annotations

import math
from itertools import cycle

from mlcd.core.configuration import Choice, Configuration, Offer, ProbeTime, Space
from mlcd.core.units import counted
from mlcd.planners.functions.nouns import MOST_ATTEMPTS, Allocation, ByUse, FunctionsTask, TrainEpochs
from mlcd.planners.functions.workload import CALIBRATION_STEPS, MB_PER_VCPU, Tariff

FEW, MANY = 2, 8
"""Functions of the two probes of a storage: what an exchange takes is a line through both."""
CALIBRATION = ProbeTime(120.0, 0.0)
MEMORIES = 4
"""Memory sizes at which computing is measured, evenly apart in their logarithm."""

BUILD_S, BUILD_MB = 120.0, 512
"""On a cloud Lithops' layer is built by a function of its own, which is ended after so long."""
ASK_S = 60.0
"""A function that was created is called once, and asked what it has; the call is given up after so long."""
DEPLOY_REQUESTS = 20
"""To put something into the bucket, and to get something: the layer, what Lithops notes, the data, the code."""


def configuration(
    task: FunctionsTask, allocation: Allocation, work: TrainEpochs | None, *, deploys: bool = False
) -> Configuration:
    """The allocation with what it costs beyond its time, for this work: calls, requests, a storage's first minutes.

    Without work it is calibrated. `deploys`: its function may have to be created first.
    """
    tariff = frozen(task)
    rate = tariff.storage(allocation.storage)
    at_once = task.at_once(allocation, len(work.trials)) if work is not None else 1
    epochs = len(work.trials) * work.epochs if work is not None else 1
    iterations = task.workload.iterations(allocation.functions) if work is not None else CALIBRATION_STEPS
    requests = iterations * (10 * allocation.functions + 2) * rate.usd_per_request
    once = epochs * (allocation.functions * tariff.usd_per_call + requests + rate.usd_per_minute)
    if deploys:  # once for all attempts
        once += _deployment_usd(tariff, allocation.memory_mb) / MOST_ATTEMPTS
    return Configuration(
        offer=_function(tariff, allocation.memory_mb),
        nodes=allocation.functions * at_once,
        setting=allocation,
        billing=ByUse(once, at_once * rate.usd_per_minute * 60),
    )


def calibration_space(task: FunctionsTask, probe_time: ProbeTime = CALIBRATION, *, deploys: bool = False) -> Space:
    """The probes that calibrate: each storage with few and with many functions, each memory at least once.

    `deploys`: on a cloud, where the first of them create the functions.
    """
    configurations = [configuration(task, each, None, deploys=deploys) for each in _probed(task)]
    offers = {each.offer: None for each in configurations}
    choices = tuple(
        Choice(offer, given=tuple(each for each in configurations if each.offer == offer)) for offer in offers
    )
    return Space(choices, probe_time)


def usable(task: FunctionsTask) -> tuple[str, ...]:
    """The storages that can hold the model."""
    rates = {rate.name: rate for rate in frozen(task).storages}
    return tuple(name for name in task.storages if name in rates and task.workload.model_mb <= rates[name].largest_mb)


def nothing_fits(task: FunctionsTask) -> str | None:
    """Why there is no allocation, whatever is measured, and what to allow; None where there is one."""
    workload, (fewest, most), (least_mb, most_mb) = task.workload, task.functions, task.memory_mb
    most = min(most, workload.samples, most if task.concurrency is None else task.concurrency)
    if fewest > workload.samples:
        samples = f"there {'is 1 sample' if workload.samples == 1 else f'are {workload.samples} samples'}"
        return f"{fewest} functions or more, and {samples}: every function needs one of its own; allow fewer functions"
    needs_mb = math.ceil(workload.needs_mb(most)) if most >= fewest else 0
    if needs_mb > most_mb:
        each = f"each of {most} functions" if most > 1 else "the function"
        return (
            f"{each} needs {needs_mb:,} MB for the model and its share of the data, and may have {most_mb:,} MB: allow "
            "more memory, or more functions"
        )
    at_once_mb = math.inf if task.memory_at_once_mb is None else task.memory_at_once_mb
    for functions in range(fewest, most + 1):
        memory_mb = max(least_mb, math.ceil(workload.needs_mb(functions)))
        if memory_mb <= most_mb and functions * memory_mb <= at_once_mb:
            return None
    return (
        f"no allocation of {counted(fewest, 'function')} or more and {least_mb} MB or more fits into what may "
        "run at once: allow fewer functions, less memory, or more at once"
    )


def allocated(configuration: Configuration) -> Allocation:
    """What each trial is given there; asking machines is a bug."""
    if not isinstance(configuration.setting, Allocation):
        raise ValueError(f"{configuration} is not on functions")
    return configuration.setting


def frozen(task: FunctionsTask) -> Tariff:
    """Its prices. They are there once a run has started; asking before is a bug."""
    if task.tariff is None:
        raise ValueError("the job has no prices yet")
    return task.tariff


def _probed(task: FunctionsTask) -> list[Allocation]:
    fewest, most = task.functions
    few, many = max(fewest, min(FEW, most)), max(fewest, min(MANY, most))
    levels, storages = memory_levels(task), usable(task)
    large = cycle(reversed(levels))
    small = cycle([memory for memory in levels if _fitting(task, many, memory) == many] or levels[:1])
    pairs = [(storage, few, next(large)) for storage in storages]
    pairs += [(storage, many, next(small)) for storage in storages]
    # A single storage has seen two memories so far: it is asked again for the others.
    unseen = [memory for memory in levels if memory not in {seen for _, _, seen in pairs}]
    pairs += [(storages[i % len(storages)], few, memory) for i, memory in enumerate(unseen)] if storages else []
    return list(dict.fromkeys(Allocation(_fitting(task, n, m), m, storage) for storage, n, m in pairs))


def _fitting(task: FunctionsTask, functions: int, memory_mb: int) -> int:
    """So many functions, or as many as are up together with this memory."""
    bounds = [functions]
    if task.concurrency is not None:
        bounds.append(task.concurrency)
    if task.memory_at_once_mb is not None:
        bounds.append(task.memory_at_once_mb // memory_mb)
    return max(task.functions[0], min(bounds))


def memory_levels(task: FunctionsTask) -> tuple[int, ...]:
    """Memory sizes to measure computing at: the ends, and some between; a whole vCPU is one of them where it can be."""
    low, high = task.memory_mb
    if low == high:
        return (low,)
    step = (high / low) ** (1 / (MEMORIES - 1))
    levels = [round(low * step**i) for i in range(MEMORIES)]
    if low < MB_PER_VCPU < high:  # where the curve bends
        levels[min(range(1, MEMORIES - 1), key=lambda i: abs(levels[i] - MB_PER_VCPU))] = MB_PER_VCPU
    return tuple(sorted(set(levels)))


def _deployment_usd(tariff: Tariff, memory_mb: int) -> float:
    """What it costs to create a function, at the most, and the layer that all of them share."""
    calls_usd = BUILD_S * tariff.usd_per_function_s(BUILD_MB) + ASK_S * tariff.usd_per_function_s(memory_mb)
    return calls_usd + 2 * tariff.usd_per_call + DEPLOY_REQUESTS * (tariff.usd_per_put + tariff.usd_per_get)


def _function(tariff: Tariff, memory_mb: int) -> Offer:
    return Offer(
        f"{memory_mb} MB function",
        tariff.usd_per_function_s(memory_mb) * 3_600,
        vcpus=memory_mb / MB_PER_VCPU,
        memory_gb=memory_mb / 1_024,
        cloud=tariff.cloud,
        region=tariff.region,
    )
