"""Logs of other libraries, read as records that the doctor understands."""
