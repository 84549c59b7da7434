"""Backends for serving trials: our own server, any Open Inference Protocol server, rented machines, recordings."""
