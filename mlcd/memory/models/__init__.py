"""Models learned by elastic runs, stored for later jobs: as files, or as rows of a team's database."""

from mlcd.memory.models.files import Unreadable, all_models, find, forget, load, save
from mlcd.memory.models.similarity import Kinship, Nearest, distance, nearest
from mlcd.memory.models.storage import InDatabase, InFiles, Shelf, shelf_of
from mlcd.memory.models.stored import FORMAT, Identity, Machine, StoredModel

__all__ = [
    "FORMAT",
    "Identity",
    "InDatabase",
    "InFiles",
    "Kinship",
    "Machine",
    "Nearest",
    "Shelf",
    "StoredModel",
    "Unreadable",
    "all_models",
    "distance",
    "find",
    "forget",
    "load",
    "nearest",
    "save",
    "shelf_of",
]
