"""What earlier runs have taught, for all planners.

earlier.py        the ledger: what was measured of the same job, and how far launches differ at a place
shelf.py          the one interface to everything that is kept by name; what a record is, its planner says
models.py         models that `mlcd scale` has learned, as files or as rows of a team's database; which one suits a job
knowledge.py      knowledge bases: folders of measurements, one's own and (in knowledge/) those that come with MLCD
"""
