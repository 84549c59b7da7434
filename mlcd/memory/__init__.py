"""What earlier runs have taught, for all planners.

earlier_runs.py   measurements of the same job, launch spread at the same place, the most similar stored model
capacity.py       availability of machines, by zone, type, size and time
record_store.py   the common interface to records that are stored by name; knowledge bases
models.py         models that `mlcd scale` has learned, as files or as rows of a team's database
knowledge/        the knowledge bases that come with MLCD
"""
