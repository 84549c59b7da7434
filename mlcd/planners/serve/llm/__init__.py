"""Serving of language models: memory and latency models, the belief of the search, replicas, engine command lines."""
