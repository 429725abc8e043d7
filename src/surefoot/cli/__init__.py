"""The command: one file a verb group. `surefoot --help` loads nothing heavy."""
