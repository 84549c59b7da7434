"""The commands of `mlcd bench`."""
