"""Query a catalog by GPU, price, memory and name, and sort the result. Pure functions."""

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase

from mlcd.catalog.files import OfferRow
from mlcd.core.errors import UnknownName, UserError

_SORT_KEYS: dict[str, Callable[[OfferRow, float], float]] = {
    "price": lambda row, usd: usd,
    "memory": lambda row, usd: -row.memory_gb,
    "gpus": lambda row, usd: -row.accelerators,
    "tflops-per-dollar": lambda row, usd: -row.offer().tflops / usd,
}
SORT_ORDERS = tuple(_SORT_KEYS)
"""Cheapest first; or most memory, most GPUs, or most fp32 rate per dollar first."""


def select(
    rows: Iterable[OfferRow],
    *,
    gpu: str | None = None,
    max_price: float | None = None,
    min_memory_gb: float | None = None,
    min_vcpus: float | None = None,
    cloud: str | None = None,
    instances: Sequence[str] = (),
    spot: bool = False,
    sort: str = "price",
) -> list[OfferRow]:
    """The rows that pass every filter, sorted. With `spot`, prices are spot prices, and rows without one are left out.

    `gpu` is a name or name:count; `instances` are patterns such as c5.*, of which one must match.
    """
    if sort not in _SORT_KEYS:
        raise UnknownName("sort order", sort, SORT_ORDERS)
    chosen = list(rows)
    # known GPUs are those of the whole catalog: one that other filters exclude is not a typo
    gpus = {row.accelerator for row in chosen if row.accelerator}
    if cloud is not None:
        clouds = {row.cloud for row in chosen}
        if cloud.lower() not in clouds:
            raise UnknownName("cloud", cloud, clouds)
        chosen = [row for row in chosen if row.cloud == cloud.lower()]
    if instances:
        chosen = _matching(chosen, instances)
    if gpu is not None:
        chosen = _with_gpu(chosen, gpu, known=gpus)
    kept = [
        (row, usd)
        for row in chosen
        if (usd := row.price(spot=spot)) is not None
        and (max_price is None or usd <= max_price)
        and (min_memory_gb is None or row.memory_gb >= min_memory_gb)
        and (min_vcpus is None or row.vcpus >= min_vcpus)
    ]
    key = _SORT_KEYS[sort]
    # ties are broken by price, then by name, so that the order is deterministic
    kept.sort(key=lambda pair: (key(*pair), pair[1], pair[0].cloud, pair[0].instance_type, pair[0].region))
    return [row for row, _ in kept]


def _matching(rows: list[OfferRow], patterns: Sequence[str]) -> list[OfferRow]:
    names = {row.instance_type for row in rows}
    for pattern in patterns:
        if not any(_matches(name, pattern) for name in names):
            raise UserError(f"no instance matches '{pattern}'{_nearest(pattern, names)}")
    return [row for row in rows if any(_matches(row.instance_type, pattern) for pattern in patterns)]


def _matches(name: str, pattern: str) -> bool:
    return fnmatchcase(name.lower(), pattern.lower())


def _nearest(pattern: str, names: set[str]) -> str:
    # for a pattern, suggest a pattern: c6.* means a family
    families = {re.sub(r"[.-].*", lambda rest: f"{rest[0][0]}*", name) for name in names}
    candidates = families if re.search(r"[*?\[]", pattern) else names
    by_lower = {name.lower(): name for name in candidates}
    near = difflib.get_close_matches(pattern.lower(), sorted(by_lower), n=5, cutoff=0.5)
    if not near:
        return "; `mlcd offers` lists them all"
    # prefer the same first letter: for c6.* rather c5.* than g6.*
    nearest = next((name for name in near if name[0] == pattern[0].lower()), near[0])
    return f": did you mean '{by_lower[nearest]}'?"


def _with_gpu(rows: list[OfferRow], gpu: str, *, known: set[str]) -> list[OfferRow]:
    match = re.fullmatch(r"\s*([^:\s]+)\s*(?::\s*([1-9]\d*)\s*)?", gpu)
    if match is None:
        raise UserError(f"gpu '{gpu}': expected a name, or a name and a count, such as A100:8")
    name, count = match[1].upper(), int(match[2]) if match[2] else None
    # A100 covers A100-80GB; the dash keeps L4 from covering L40S
    matching = {each for each in known if each.upper() == name or each.upper().startswith(f"{name}-")}
    if not matching:
        raise unknown_gpu([name], known)
    return [row for row in rows if row.accelerator in matching and count in (None, row.accelerators)]


def unknown_gpu(names: Sequence[str], known: Iterable[str]) -> UserError:
    """The error about GPUs in no catalog. Another model is not a typo: B200 does not suggest H200."""
    known_names = sorted(set(known))
    alike = [other for other in known_names if other[:1] == names[0][:1].upper()]
    near = difflib.get_close_matches(names[0].upper(), alike, n=1, cutoff=0.7)
    meant = f" Did you mean '{near[0]}'?" if near else " If a cloud has it, add its row: docs/reference/catalog.md."
    return UserError(f"no catalog here has {' or '.join(names)}; they have {', '.join(known_names)}.{meant}")
