"""Checkpoints: writing, reading and retention, without pickle."""
