"""Constitutional AI: principles, critique and revision, preferences, the pipeline."""
