"""Language models behind an OpenAI-compatible API: their sizes, what fits where, how fast, and how many replicas."""
