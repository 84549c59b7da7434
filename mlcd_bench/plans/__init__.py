"""Comparisons on measured training plans of language models: which method needs the fewest probes for the best plan."""
