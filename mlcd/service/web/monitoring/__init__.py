"""Monitoring for operators: metrics, readiness, and a request log."""
