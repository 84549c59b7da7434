"""The load generator: arrival processes, clients for the protocols, and results."""
