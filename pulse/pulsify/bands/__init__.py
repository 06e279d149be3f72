"""Attention over a band of frames: masks as patterns, their proof, and positions relative to a query."""
