"""The planners, a folder each, and what they share: job files, options, profilers and models."""
