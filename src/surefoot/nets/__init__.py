"""Policies: how an observation becomes an action, and a stored action its probability. Torch loads on first use."""
