"""The SkyPilot backend: machines of any cloud, rented through SkyPilot."""
