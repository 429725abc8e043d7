"""Evaluation of decision policies: off-policy estimates, log replay, trials on data sets, reports."""
