"""The planners: for each, what may vary and one file for each published algorithm."""
