"""Prompts made better a step at a time: mutations of text, scorers, and a policy that learns which to choose when."""
