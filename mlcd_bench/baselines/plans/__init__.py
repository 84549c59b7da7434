"""What to compare the choice of a training plan with."""
