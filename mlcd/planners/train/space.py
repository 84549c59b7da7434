"""The search space of training: instance types x numbers of nodes, narrowed to what the job asks for."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from mlcd.core.configuration import Choice, Offer, Space
from mlcd.core.errors import UserError
from mlcd.core.job import Job

ASKED = ("instance_type", "accelerators", "cpus", "memory", "infra", "cloud")
"""Keys of `resources` that restrict the instance type."""

MOST_NAMES = 3
"""Most types that a message lists."""
ANY = "any"
"""Value of `use_spot`: on-demand or spot machines, decided again and again while the job runs."""


def narrow(space: Space, job: Job) -> Space:
    """The part of a cloud's space that matches the job: instance patterns, node range, resources, memory."""
    patterns = [pattern.lower() for pattern in job.search.instances]
    named = [c for c in space.choices if any(fnmatchcase(c.offer.instance_type.lower(), each) for each in patterns)]
    if not named:
        raise UserError(_no_match(space.offers, job.search.instances))
    suited = [c for c in named if _suits(c.offer, job)]
    if not suited:
        raise UserError(f"no type here has {_requirements(job)}; relax that, or list the types: mlcd offers")
    low, high = job.search.nodes
    sized = [replace(choice, nodes=tuple(n for n in choice.nodes if low <= n <= high)) for choice in suited]
    choices = tuple(choice for choice in sized if choice.nodes)
    if not choices:
        counts = sorted({n for choice in suited for n in choice.nodes})
        raise UserError(f"nodes {low}..{high}: empty here; this cloud has {counts[0]}..{counts[-1]} nodes of a type")
    return replace(space, choices=choices)


def grid(offers: tuple[Offer, ...], nodes: tuple[int, int], **terms: Any) -> Space:
    """Every offer with every node count of the range."""
    counts = tuple(range(nodes[0], nodes[1] + 1))
    return Space(tuple(Choice(offer, counts) for offer in offers), **terms)


def spot_of(job: Job) -> bool | None:
    """`use_spot` of the job's `resources`: True for spot machines, False for on-demand ones, None for 'any'."""
    written = (job.task.get("resources") or {}).get("use_spot")
    if written == ANY:
        return None
    if written in (None, True, False):
        return bool(written)
    raise UserError(f"use_spot: '{written}': expected true, false or any")


def check_instances(job: Job, offers: Sequence[Offer], known: Iterable[str]) -> None:
    """Raise for a pattern that matches no offer and no known type: beside others, a typo would silently drop a type."""
    names = {name.lower() for name in known} | {offer.instance_type.lower() for offer in offers}
    for pattern in job.search.instances:
        if not any(fnmatchcase(name, pattern.lower()) for name in names):
            raise UserError(_no_match(offers, (pattern,)))


def _no_match(offers: Sequence[Offer], patterns: tuple[str, ...]) -> str:
    names = sorted({offer.instance_type for offer in offers})
    stem = re.sub(r"[*?\[\]]", "", patterns[0]) if patterns else ""
    if have := [offer.instance_type for offer in offers if is_of_gpu(offer.accelerator, stem)]:
        types = ", ".join(list(dict.fromkeys(have))[:MOST_NAMES])
        return f"no instance matches '{', '.join(patterns)}', which is a GPU; types that have it: {types}"
    near = difflib.get_close_matches(stem, names, n=3, cutoff=0.4)
    hint = f"did you mean {', '.join(near)}?" if near else f"there are {len(names)} types, such as {names[0]}"
    return f"no instance matches '{', '.join(patterns)}': {hint}"


def is_of_gpu(accelerator: str, name: str) -> bool:
    """Whether a GPU matches this name, as A100-80GB matches a100: the dash keeps L4 from matching L40S."""
    own, name = accelerator.upper(), name.upper()
    return bool(name) and (own == name or own.startswith(f"{name}-"))


def _suits(offer: Offer, job: Job) -> bool:
    """Whether an offer satisfies the SkyPilot `resources` block and the memory hint."""
    needed = job.hints.memory_gb
    memory = offer.accelerators * offer.accelerator_memory_gb or offer.memory_gb
    if needed is not None and memory < needed:
        return False
    resources: Mapping[str, Any] = job.task.get("resources") or {}
    if (wanted := resources.get("instance_type")) and offer.instance_type != wanted:
        return False
    cloud = str(resources.get("infra") or resources.get("cloud") or "").lower().partition("/")[0]
    if offer.cloud and cloud not in ("", "*", offer.cloud):
        return False
    if not _enough(resources.get("cpus"), offer.vcpus) or not _enough(resources.get("memory"), offer.memory_gb):
        return False
    return _has_accelerator(resources.get("accelerators"), offer)


def _enough(wanted: Any, has: float) -> bool:
    """SkyPilot's '8' is exactly eight, '8+' eight or more."""
    if wanted is None:
        return True
    text = str(wanted)
    return has >= float(text[:-1]) if text.endswith("+") else has == float(text)


def _requirements(job: Job) -> str:
    """The job's requirements for a machine, as its file has them."""
    resources: Mapping[str, Any] = job.task.get("resources") or {}
    asked = [f"{key} {_written(resources[key])}" for key in ASKED if resources.get(key)]
    if job.hints.memory_gb is not None:
        asked.append(f"{job.hints.memory_gb:g} GB for the model (`memory`)")
    return ", ".join(asked)


def _written(wanted: Any) -> str:
    if isinstance(wanted, Mapping):
        return " or ".join(f"{name}:{count}" if count else str(name) for name, count in wanted.items())
    return " or ".join(str(each) for each in wanted) if isinstance(wanted, list | set) else str(wanted)


def accelerators_of(job: Job) -> list[str]:
    """The names of the accelerators in the job's `resources`, any of which would do, without counts."""
    wanted = (job.task.get("resources") or {}).get("accelerators") or []
    options = wanted if isinstance(wanted, list | dict | set) else [wanted]
    return [str(option).partition(":")[0] for option in options]


def _has_accelerator(wanted: Any, offer: Offer) -> bool:
    """SkyPilot's 'A100:8', ['A100:8', 'H100:8'], {A100: 8} or {'A100:8'}; without a count, any number."""
    if not wanted:
        return True
    options = wanted if isinstance(wanted, list | dict) else [wanted]
    for option in options:
        name, _, count = str(option).partition(":")
        count = str(wanted[option] or count) if isinstance(wanted, dict) else count
        if offer.accelerator.lower() == name.lower() and count in ("", str(offer.accelerators)):
            return True
    return False
