"""One module per command of `surefoot`."""
