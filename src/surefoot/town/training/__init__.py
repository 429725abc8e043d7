"""Training, capture, teaching and promotion of town policies."""
