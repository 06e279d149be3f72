"""The streams of a program on any backend: states and lanes, their inputs, and how they end."""
