"""The command line. `surefoot --help` loads nothing heavy."""
