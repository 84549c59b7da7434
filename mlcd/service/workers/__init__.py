"""The processes that drive submitted runs: one for each run, on this machine or on workers that poll a queue."""
