"""Models of elastic training, replayed on real runs: accuracy of the predicted time to a target, and their choices."""

from mlcd_bench.scale.folder import Folder, read_folder
from mlcd_bench.scale.problem import Problem, problem
from mlcd_bench.scale.score import Choice, Pooled, Row, pool, score
from mlcd_bench.scale.searches import NEEDS_OTHERS, SEARCHES, without_noise

__all__ = [
    "NEEDS_OTHERS",
    "SEARCHES",
    "Choice",
    "Folder",
    "Pooled",
    "Problem",
    "Row",
    "pool",
    "problem",
    "read_folder",
    "score",
    "without_noise",
]
