"""How a running job is measured, one file for each kind of job."""
