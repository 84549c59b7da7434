"""MLCD over HTTP: the API under /api/v1 and the pages. It reads the ledger and sends runs to workers."""
