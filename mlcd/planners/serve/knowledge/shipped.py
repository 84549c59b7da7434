"""The knowledge bases that come with MLCD: measured by `mlcd learn` on a CPU and on an NVIDIA H200."""

from __future__ import annotations

from functools import cache
from importlib.resources import as_file, files

from mlcd.core.errors import UnknownName
from mlcd.planners.serve.knowledge.folder import ABOUT, read_knowledge
from mlcd.planners.serve.known_models import Knowledge


def shipped_names() -> tuple[str, ...]:
    """What there is: 'cpu', 'h200'."""
    return tuple(
        sorted(each.name for each in files("mlcd.planners.serve.knowledge").iterdir() if (each / ABOUT).is_file())
    )


@cache
def shipped(name: str) -> Knowledge:
    """The one of that name."""
    if name not in shipped_names():
        raise UnknownName("knowledge base", name, shipped_names())
    with as_file(files("mlcd.planners.serve.knowledge") / name) as folder:
        return read_knowledge(folder)
