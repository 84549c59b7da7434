"""Measuring methods against an oracle, on recordings."""

from mlcd.bench.train import Problem, Result, Scenario, contest, problems

__all__ = ["Problem", "Result", "Scenario", "contest", "problems"]
