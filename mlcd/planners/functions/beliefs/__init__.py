"""Training on functions: how long an epoch takes and what it costs, from what was measured."""
