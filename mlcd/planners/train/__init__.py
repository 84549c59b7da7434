"""Training: instance type x node count. `net_value` is ours, and the default; `heterbo` is the paper's."""
