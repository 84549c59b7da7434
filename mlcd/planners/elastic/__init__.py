"""Elastic training: workers x batch size, found while the job runs (Scavenger)."""

from mlcd.planners.elastic.average import average_model
from mlcd.planners.elastic.belief import Belief, believe, curve, reached
from mlcd.planners.elastic.epochs import epochs_at_reference
from mlcd.planners.elastic.search import ElasticSearch
from mlcd.planners.elastic.share import batch_of, local_batch, machine_of
from mlcd.planners.elastic.space import elastic_space
from mlcd.planners.elastic.steer import RunElastic

__all__ = [
    "Belief",
    "ElasticSearch",
    "RunElastic",
    "average_model",
    "batch_of",
    "believe",
    "curve",
    "elastic_space",
    "epochs_at_reference",
    "local_batch",
    "machine_of",
    "reached",
]
