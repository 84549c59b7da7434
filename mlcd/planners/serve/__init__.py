"""Serve a model that nobody has seen before: what may vary, and the ways to search it."""
