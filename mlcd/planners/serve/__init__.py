"""Serve a model that nobody has seen before: what may vary, and how to search it."""
