"""The record in other formats: pages, summaries, trackers, Parquet."""
