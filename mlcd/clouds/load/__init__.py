"""The load generator: when requests are sent, how, and their results."""
