"""Knowledge bases: measurements of models."""

from mlcd.planners.serve.knowledge.folder import read_knowledge
from mlcd.planners.serve.knowledge.shipped import shipped, shipped_names

__all__ = ["read_knowledge", "shipped", "shipped_names"]
