"""Export of a run's decision as files that other tools deploy; `targets.py` lists the tools."""
