"""Gymnasium, Atari and EnvPool environments as worlds."""
