"""The commands `mlcd bench` and `mlcd learn`."""
