"""Files that are complete or not there at all."""
