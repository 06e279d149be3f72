"""Models joined end to end, as one typed model."""
