"""The streams of a model that are stepped together."""
