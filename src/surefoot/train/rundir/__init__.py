"""The run directory: names, recorder, summary, resume checks."""
