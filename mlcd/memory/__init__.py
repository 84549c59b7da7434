"""What earlier runs have taught, for all planners.

earlier.py     of the same job and place: measurements in the ledger, how far launches differ, the stored model to use
capacity.py    of the clouds: whether machines could be had, by zone, type, size and time
shelf.py       the one interface to what is kept by name, of which each planner reads its own; knowledge bases
models.py      models that `mlcd scale` has learned, as files or as rows of a team's database
knowledge/     the knowledge bases that come with MLCD
"""
