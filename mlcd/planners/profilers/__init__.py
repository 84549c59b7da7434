"""Measuring a running job: one file for each kind of job."""
