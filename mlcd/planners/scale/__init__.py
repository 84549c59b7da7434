"""Elastic training: workers x batch size, found while the job runs (Scavenger)."""
