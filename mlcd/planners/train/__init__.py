"""Training: instance type x node count. `net_value` is the method."""
