"""Real nodes on this machine."""

from mlcd.clouds.local.backend import Local
from mlcd.clouds.local.isolation import what_nodes_lack, why_not_isolated
from mlcd.clouds.local.node_types import NodeType, NodeTypes, load_node_types
from mlcd.clouds.local.workspace import what_probes_share

__all__ = [
    "Local",
    "NodeType",
    "NodeTypes",
    "load_node_types",
    "what_nodes_lack",
    "what_probes_share",
    "why_not_isolated",
]
