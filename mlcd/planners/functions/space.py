"""Allocations of functions as configurations with a price, and the space of calibration probes."""

from __future__ import annotations

import math
from itertools import cycle

from mlcd.core.configuration import Choice, Configuration, Offer, ProbeTime, Space
from mlcd.core.units import counted
from mlcd.planners.functions.nouns import MOST_ATTEMPTS, Allocation, ByUse, FunctionsTask, TrainEpochs
from mlcd.planners.functions.workload import CALIBRATION_STEPS, MB_PER_VCPU, Tariff

FEW_FUNCTIONS, MANY_FUNCTIONS = 2, 8
"""Functions of the two probes of a storage: the time of an exchange is a line through both."""
CALIBRATION = ProbeTime(120.0, 0.0)
MEMORY_SIZES = 4
"""Number of memory sizes at which computing is measured, evenly spaced in the log."""

BUILD_S, BUILD_MB = 120.0, 512
"""Timeout and memory of the function that builds Lithops' layer, on a cloud."""
INSPECT_S = 60.0
"""Timeout of the call by which Lithops lists the modules of a new function."""
DEPLOY_REQUESTS = 20
"""Puts, and gets, of the bucket at a deployment: the layer, Lithops' metadata, the data, the code."""


def configuration(
    task: FunctionsTask, allocation: Allocation, work: TrainEpochs | None, *, deploys: bool = False
) -> Configuration:
    """The configuration of an allocation, with the costs of this work beyond time: calls, requests, a storage's minute.

    `work`: None for a calibration. `deploys`: the function may have to be created first.
    """
    tariff = tariff_of(task)
    rate = tariff.storage(allocation.storage)
    at_once = task.trials_at_once(allocation, len(work.trials)) if work is not None else 1
    epochs = len(work.trials) * work.epochs if work is not None else 1
    iterations = task.workload.iterations(allocation.functions) if work is not None else CALIBRATION_STEPS
    requests = iterations * (10 * allocation.functions + 2) * rate.usd_per_request
    once = epochs * (allocation.functions * tariff.usd_per_call + requests + rate.usd_per_minute)
    if deploys:  # paid once, not for each attempt
        once += _deployment_usd(tariff, allocation.memory_mb) / MOST_ATTEMPTS
    return Configuration(
        offer=_function(tariff, allocation.memory_mb),
        nodes=allocation.functions * at_once,
        setting=allocation,
        billing=ByUse(once, at_once * rate.usd_per_minute * 60),
    )


def calibration_space(task: FunctionsTask, probe_time: ProbeTime = CALIBRATION, *, deploys: bool = False) -> Space:
    """The calibration probes: each storage with few and with many functions, each memory size at least once.

    `deploys`: on a cloud, where the first probes create the functions.
    """
    configurations = [configuration(task, each, None, deploys=deploys) for each in _calibration_allocations(task)]
    offers = {each.offer: None for each in configurations}
    choices = tuple(
        Choice(offer, given=tuple(each for each in configurations if each.offer == offer)) for offer in offers
    )
    return Space(choices, probe_time)


def usable_storages(task: FunctionsTask) -> tuple[str, ...]:
    """The storages that the task allows and that can hold the model."""
    rates = {rate.name: rate for rate in tariff_of(task).storages}
    return tuple(name for name in task.storages if name in rates and task.workload.model_mb <= rates[name].largest_mb)


def why_nothing_fits(task: FunctionsTask) -> str | None:
    """Why no allocation is possible, and what to allow; None if one is."""
    workload, (fewest, most), (least_mb, most_mb) = task.workload, task.functions, task.memory_mb
    most = min(most, workload.samples, most if task.concurrency is None else task.concurrency)
    if fewest > workload.samples:
        samples = f"there {'is 1 sample' if workload.samples == 1 else f'are {workload.samples} samples'}"
        return f"{fewest} functions or more, but {samples}: each function needs at least one; allow fewer functions"
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


def allocation_at(configuration: Configuration) -> Allocation:
    """The allocation of a configuration on functions; calling it for machines is a bug."""
    if not isinstance(configuration.setting, Allocation):
        raise ValueError(f"{configuration} is not on functions")
    return configuration.setting


def tariff_of(task: FunctionsTask) -> Tariff:
    """The prices of a task; calling it before a run has started is a bug."""
    if task.tariff is None:
        raise ValueError("the job has no prices yet")
    return task.tariff


def _calibration_allocations(task: FunctionsTask) -> list[Allocation]:
    fewest, most = task.functions
    few, many = max(fewest, min(FEW_FUNCTIONS, most)), max(fewest, min(MANY_FUNCTIONS, most))
    levels, storages = memory_levels(task), usable_storages(task)
    large = cycle(reversed(levels))
    small = cycle([memory for memory in levels if _most_functions(task, many, memory) == many] or levels[:1])
    pairs = [(storage, few, next(large)) for storage in storages]
    pairs += [(storage, many, next(small)) for storage in storages]
    # With a single storage only two memory sizes are probed so far: add the others.
    missing = [memory for memory in levels if memory not in {probed for _, _, probed in pairs}]
    pairs += [(storages[i % len(storages)], few, memory) for i, memory in enumerate(missing)] if storages else []
    return list(dict.fromkeys(Allocation(_most_functions(task, n, m), m, storage) for storage, n, m in pairs))


def _most_functions(task: FunctionsTask, functions: int, memory_mb: int) -> int:
    """At most `functions`, and as many as can run at once with this memory."""
    bounds = [functions]
    if task.concurrency is not None:
        bounds.append(task.concurrency)
    if task.memory_at_once_mb is not None:
        bounds.append(task.memory_at_once_mb // memory_mb)
    return max(task.functions[0], min(bounds))


def memory_levels(task: FunctionsTask) -> tuple[int, ...]:
    """The memory sizes at which computing is measured: smallest, largest, some between; one whole vCPU if in range."""
    low, high = task.memory_mb
    if low == high:
        return (low,)
    step = (high / low) ** (1 / (MEMORY_SIZES - 1))
    levels = [round(low * step**i) for i in range(MEMORY_SIZES)]
    if low < MB_PER_VCPU < high:  # where the curve bends
        levels[min(range(1, MEMORY_SIZES - 1), key=lambda i: abs(levels[i] - MB_PER_VCPU))] = MB_PER_VCPU
    return tuple(sorted(set(levels)))


def _deployment_usd(tariff: Tariff, memory_mb: int) -> float:
    """The most that it costs to create a function, and the layer that all functions share."""
    calls_usd = BUILD_S * tariff.usd_per_function_s(BUILD_MB) + INSPECT_S * tariff.usd_per_function_s(memory_mb)
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
