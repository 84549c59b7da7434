"""Real nodes on this machine."""

from mlcd.backends.local.backend import Local
from mlcd.backends.local.isolation import what_nodes_lack, why_not_isolated
from mlcd.backends.local.node_types import NodeType, NodeTypes, load_node_types

__all__ = ["Local", "NodeType", "NodeTypes", "load_node_types", "what_nodes_lack", "why_not_isolated"]
