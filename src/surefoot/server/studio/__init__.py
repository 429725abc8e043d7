"""The studio: a web editor in which graphs are built, run and inspected."""
