"""A client of the service's API, for the command line. httpx is imported only when a server is used."""
