"""The town simulation. Numpy only."""
