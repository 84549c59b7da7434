"""What elastic runs have learned, kept for the jobs to come: a file for each, or a row of a team's database."""

from mlcd.models.files import Unreadable, all_models, find, forget, load, save
from mlcd.models.likeness import Kinship, Nearest, distance, nearest
from mlcd.models.shelf import InDatabase, InFiles, Shelf, shelf_of
from mlcd.models.stored import FORMAT, Identity, Machine, StoredModel

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
