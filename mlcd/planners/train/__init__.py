"""`mlcd train`: choose the instance type, the number of nodes and, for language models, the training plan."""
