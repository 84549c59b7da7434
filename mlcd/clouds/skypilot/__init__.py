"""Machines of any cloud, rented through SkyPilot."""
