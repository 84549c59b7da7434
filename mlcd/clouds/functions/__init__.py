"""Backends that train on functions: real ones through Lithops, and simulated ones."""
