"""Policies over candidate options and their learners."""
