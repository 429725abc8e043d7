"""The loop: who collects, who learns, when to save, when to look. Torch loads on first use."""
