"""Nodes of a Ray cluster."""

from mlcd.backends.ray.backend import Ray, available
from mlcd.backends.ray.node_types import NodeType, NodeTypes, load_node_types

__all__ = ["NodeType", "NodeTypes", "Ray", "available", "load_node_types"]
