"""Files of models and values."""
