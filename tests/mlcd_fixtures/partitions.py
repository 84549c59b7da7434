"""Training data in partitions, as functions share it."""

from __future__ import annotations

from mlcd.planners.functions.workloads import Features, Labels, dataset


def partition(
    data: str, samples: int, part: int, parts: int, seed: int = 0, folder: str = ""
) -> tuple[Features, Labels]:
    """One of so many parts of the first so many samples."""
    return dataset(data, folder).rows(samples * part // parts, samples * (part + 1) // parts, seed)
