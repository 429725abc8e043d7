"""Decisions over named options: encode what is asked, choose among candidates, and learn from what comes of it."""
