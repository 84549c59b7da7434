"""Baselines: methods of other papers and common practice, registered as entry points of `mlcd.methods`."""
