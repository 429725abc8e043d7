"""Sampling of responses and their conversion to rollouts."""
