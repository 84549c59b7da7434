"""Searches for serving configurations, replayed on recorded load tests."""

from mlcd.planners.serve.recordings import Recording, read_folder
from mlcd_bench.serve.contest import ServeResult, compete, play
from mlcd_bench.serve.problem import Caps, ServeProblem, serve_problems, unprofiled
from mlcd_bench.serve.summary import summary

__all__ = [
    "Caps",
    "Recording",
    "ServeProblem",
    "ServeResult",
    "compete",
    "play",
    "read_folder",
    "serve_problems",
    "summary",
    "unprofiled",
]
