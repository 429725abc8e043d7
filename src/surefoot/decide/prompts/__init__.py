"""Prompt improvement: text mutations, scorers, and a policy that selects the mutation."""
