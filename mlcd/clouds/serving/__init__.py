"""Servers to test: our own, any that speaks the Open Inference Protocol, and recorded ones."""
