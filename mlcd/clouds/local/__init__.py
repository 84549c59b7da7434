"""Real nodes on this machine."""
