"""SB3's records: logger, output formats, monitor files, plots."""
