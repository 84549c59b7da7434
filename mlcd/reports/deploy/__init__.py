"""A serving run's decision as files that other tools deploy: a target is one file, and `targets.py` lists them."""
