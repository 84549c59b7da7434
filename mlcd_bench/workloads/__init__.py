"""What the examples and studies train on functions: models and synthetic data, as CE-scaling was evaluated with."""
