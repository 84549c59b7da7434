"""Elastic training: find workers x batch size while the job runs, and change both on the way (Scavenger)."""
