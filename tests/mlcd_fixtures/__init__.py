"""Shared test fixtures: made-up clouds and runs, fakes of other systems, and checks of each planner's promises."""
