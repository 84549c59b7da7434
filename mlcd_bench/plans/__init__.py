"""Contests on recorded plans of training language models: who finds the best plan by the fewest probes."""
