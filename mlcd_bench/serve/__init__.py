"""Searches for serving configurations, replayed on recorded load tests."""

from mlcd.planners.serve.llm.recording import EngineFolder
from mlcd.planners.serve.recordings import Recording, read_folder
from mlcd_bench.serve.contest import ServeResult, compete, play
from mlcd_bench.serve.engines import EngineRun, engine_problems, engine_summary, play_engines
from mlcd_bench.serve.problem import Caps, ServeProblem, serve_problems, unprofiled
from mlcd_bench.serve.summary import summary

__all__ = [
    "Caps",
    "EngineFolder",
    "EngineRun",
    "Recording",
    "ServeProblem",
    "ServeResult",
    "compete",
    "engine_problems",
    "engine_summary",
    "play",
    "play_engines",
    "read_folder",
    "serve_problems",
    "summary",
    "unprofiled",
]
