"""How long GPUs exchange data in a run: over NVLink inside a machine, over the network between machines."""

from __future__ import annotations

from mlcd.planners.train.plans.facts import Facts


def link_gb_s(facts: Facts, gpus: float) -> float:
    """GB/s one way of a GPU to the others of a group whose members are neighbours."""
    return facts.gpu.link_gb_s(gpus) if gpus <= facts.gpus_per_node else facts.gpu.network_gb_s


def near_and_far(facts: Facts, data: float, ranks: int, stride: int) -> tuple[float, float]:
    """Seconds for so many bytes inside machines and between them, in a ring of ranks that are `stride` GPUs apart.

    Rings of all members that a machine has use its adapters together.
    """
    if ranks <= 1 or data <= 0:
        return 0.0, 0.0
    together = max(1, min(ranks, facts.gpus_per_node // stride))
    near = data * (together - 1) / together / (1e9 * facts.gpu.link_gb_s(min(facts.gpus_per_node, ranks * stride)))
    machines = ranks / together
    far = data * (machines - 1) / machines / (1e9 * facts.gpu.network_gb_s * together)
    return (near if together > 1 else 0.0), far
