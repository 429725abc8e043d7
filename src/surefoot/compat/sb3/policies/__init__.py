"""SB3's policies: distributions, feature extractors, actor-critic classes."""
