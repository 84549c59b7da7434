"""Functions to train on: real ones through Lithops, and simulated ones."""
