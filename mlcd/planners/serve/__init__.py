"""`mlcd serve`: find the machine and the server settings that serve a model best, with few load tests."""
