"""The shapes that functions assume for their input."""

SOUND = "1,T"
"""Samples of one channel."""
FEATURES = "1,frames,80"
"""Frames of 80 features."""
