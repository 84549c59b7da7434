"""What tests share: made clouds and runs, fakes of other systems, the promises of each planner."""
