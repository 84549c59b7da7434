"""What a hostile member of a team can try against `mlcd service`, one function for each attack."""
