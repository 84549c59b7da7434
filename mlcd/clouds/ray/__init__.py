"""Nodes of a Ray cluster."""
