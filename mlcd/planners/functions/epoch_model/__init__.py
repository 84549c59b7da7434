"""The model of an epoch on functions: its time and cost, its parameters, and the Pareto-optimal allocations."""
