"""Environments as vectorised worlds of N streams. Numpy only."""
