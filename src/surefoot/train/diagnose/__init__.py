"""Diagnostics of runs and environments: lint, probes, speed, statistics, recovery."""
