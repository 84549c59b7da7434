"""How long GPUs exchange data: over NVLink inside a machine, over the network between machines."""

from __future__ import annotations

from mlcd.planners.train.plans.run_spec import RunSpec


def link_gb_s(spec: RunSpec, gpus: float) -> float:
    """One-way GB/s from a GPU to the others of a group of neighbouring GPUs."""
    return spec.gpu.link_gb_s(gpus) if gpus <= spec.gpus_per_node else spec.gpu.network_gb_s


def near_and_far(spec: RunSpec, data: float, ranks: int, stride: int) -> tuple[float, float]:
    """Seconds inside machines and between them for `data` bytes, in a ring of ranks that are `stride` GPUs apart.

    All ranks of a machine share its network adapters.
    """
    if ranks <= 1 or data <= 0:
        return 0.0, 0.0
    together = max(1, min(ranks, spec.gpus_per_node // stride))
    near = data * (together - 1) / together / (1e9 * spec.gpu.link_gb_s(min(spec.gpus_per_node, ranks * stride)))
    machines = ranks / together
    far = data * (machines - 1) / machines / (1e9 * spec.gpu.network_gb_s * together)
    return (near if together > 1 else 0.0), far
