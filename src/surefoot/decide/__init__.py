"""Decisions over named options: encoding of queries, choice among candidates, learning from outcomes."""
