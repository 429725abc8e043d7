"""The record in other formats: pages, summaries, trackers, Parquet."""

from surefoot._moved import moved_names

__getattr__ = moved_names(__name__, f"{__name__}.formats")
