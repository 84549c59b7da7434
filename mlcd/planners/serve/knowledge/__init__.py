"""What models that were measured before have shown."""

from mlcd.planners.serve.knowledge.folder import read_knowledge
from mlcd.planners.serve.knowledge.shipped import shipped, shipped_names

__all__ = ["read_knowledge", "shipped", "shipped_names"]
