"""Environments stepped by a pool of worker processes."""
