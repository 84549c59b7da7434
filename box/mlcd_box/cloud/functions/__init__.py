"""Lambda of the box: its API, processes under control groups behind it, and its rules of billing.

rules.py         limits, a function's share of a CPU, what a call is billed
records.py       functions and layers, as AWS describes them
service.py       what the API does: create, update, delete; calls, their environments, throttling
pool.py          environments that are warm, and how many calls run at once
environment.py   an execution environment: a process, its file system, its limits
limits.py        the control groups of an environment
bootstrap.py     what runs in an environment and calls the handler
archives.py      zip files of code and layers, unpacked
api.py           the REST routes
https.py         the address lambda.REGION.amazonaws.com, which Lithops calls by name
runtime.py       the Python of the functions, built once
"""
