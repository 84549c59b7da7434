"""The Ray backend: nodes of an existing Ray cluster."""
