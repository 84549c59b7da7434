"""Who drives the runs that people submit: a process for each, here or taken from a queue by workers elsewhere."""
