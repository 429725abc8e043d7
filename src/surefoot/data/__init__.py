"""Data types shared by all rooms: rollouts, decisions, replay, spaces, settings. Numpy only."""
