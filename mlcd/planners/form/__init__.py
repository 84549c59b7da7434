"""Build a job from options and a job file, for the command line and the API alike."""
