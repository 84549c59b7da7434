"""Lambda in the box: its API, processes with control groups behind it, and its billing rules.

service.py          what the API does: create, update, delete and call functions; queues, retries, throttling
api.py              the REST routes
rules.py            limits, a function's share of a CPU, the billed time of a call
records.py          functions and layers, as AWS describes them
pool.py             warm environments, and the limit of calls at once
environment.py      an execution environment: a process, its file system, its limits
control_groups.py   the control groups of an environment
bootstrap.py        the program in an environment that calls the handler
archives.py         unpacks zip files of code and layers
https.py            the address lambda.REGION.amazonaws.com, which Lithops calls by name
runtime.py          the Python of the functions, built once
services.py         Lambda in each region of a box
"""
