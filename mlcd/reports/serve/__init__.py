"""Reports of serving runs: trials, their figures, the decision, and the cost of a million answers."""
