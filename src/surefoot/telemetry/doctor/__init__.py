"""The run doctor: signals, rules, findings and alerts."""
