"""Surefoot under fire: kills, bad inputs, damaged files, long runs, each with a defect that must be caught."""
