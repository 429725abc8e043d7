"""Encoders that map texts to unit vectors."""
