"""Searches for serving configurations, replayed on recorded load tests."""

from mlcd.bench.serve.contest import ServeResult, compete, play
from mlcd.bench.serve.problem import Caps, ServeProblem, serve_problems, unprofiled
from mlcd.bench.serve.summary import summary
from mlcd.knowledge.recordings import ServingFolder, read_folder

__all__ = [
    "Caps",
    "ServeProblem",
    "ServeResult",
    "ServingFolder",
    "compete",
    "play",
    "read_folder",
    "serve_problems",
    "summary",
    "unprofiled",
]
