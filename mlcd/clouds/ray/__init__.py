"""Nodes of a Ray cluster."""

from mlcd.clouds.ray.backend import Ray, available
from mlcd.clouds.ray.node_types import NodeType, NodeTypes, load_node_types

__all__ = ["NodeType", "NodeTypes", "Ray", "available", "load_node_types"]
