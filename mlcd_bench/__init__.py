"""Research, not part of the product: baselines, comparisons with an oracle, and reruns of published experiments."""
