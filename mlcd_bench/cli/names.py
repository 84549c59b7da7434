"""Lists of names, as `mlcd bench` takes them."""

from __future__ import annotations

from collections.abc import Collection


def split_names(what: str, written: str, known: Collection[str]) -> list[str]:
    """Names with commas, each of them known; or 'all'."""
    from mlcd.core.errors import UnknownName

    names = list(known) if written == "all" else [name.strip() for name in written.split(",")]
    for name in names:
        if name not in known:
            raise UnknownName(what, name, known)
    return names
