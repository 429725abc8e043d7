"""Algorithms on top of PPO: cloning, curiosity, hierarchy, self-play."""
