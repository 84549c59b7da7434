"""Batch inference as a planner of MLCD: how many machines, and how many items in a chunk."""
