"""The record of a run: schema, writer, reader, validation."""
