"""Files of the record: appending, rotation, truncation."""
