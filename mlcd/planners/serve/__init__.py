"""Serve a model that was never measured: what may vary, and how to search it."""
