"""News of runs: what is news, who receives it, and how it is sent until it has arrived."""
