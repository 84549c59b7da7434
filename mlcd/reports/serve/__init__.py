"""What is told of a run that serves a model: its trials, the figures of each, the cost of a million answers."""
