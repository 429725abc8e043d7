"""Scenario files of the town, their definition and validation."""
