"""The nouns: what an experience is. Numpy only."""
