"""Chunk models: models whose author made them streaming by hand, with the states among inputs and outputs."""
