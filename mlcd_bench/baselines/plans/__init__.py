"""Baselines for the choice of a training plan."""
