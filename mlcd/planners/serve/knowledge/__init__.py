"""What models that were measured before have shown."""

from mlcd.planners.serve.knowledge.folder import Curves, read_curves, read_knowledge, write_knowledge
from mlcd.planners.serve.knowledge.shipped import shipped, shipped_curves, shipped_names

__all__ = [
    "Curves",
    "read_curves",
    "read_knowledge",
    "shipped",
    "shipped_curves",
    "shipped_names",
    "write_knowledge",
]
