"""What elastic runs have learned, kept for the jobs to come: one file for each, in a folder that the caller names."""

from mlcd.models.files import Unreadable, all_models, find, forget, load, save
from mlcd.models.likeness import Kinship, Nearest, distance, nearest
from mlcd.models.stored import FORMAT, Identity, Machine, StoredModel

__all__ = [
    "FORMAT",
    "Identity",
    "Kinship",
    "Machine",
    "Nearest",
    "StoredModel",
    "Unreadable",
    "all_models",
    "distance",
    "find",
    "forget",
    "load",
    "nearest",
    "save",
]
