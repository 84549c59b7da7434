"""Moved: mlcd.knowledge.recordings."""

from mlcd.knowledge.recordings import ServingFolder, read_folder

__all__ = ["ServingFolder", "read_folder"]
