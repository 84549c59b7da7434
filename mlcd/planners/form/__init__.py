"""What was asked for, as a job: the command line and the API build the same one."""
