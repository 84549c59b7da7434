"""Refreshing a cloud's catalog from its own API: one file for each cloud."""
