"""Numbers of frames that no stream reaches, and that no memory holds; each for one purpose."""

MAX_FRAMES = 1 << 24
"""Maximum number of frames of a pulse, a window, padding, or a stream whose time is estimated; more would be a
mistake, and memory would run out."""

FAR_FRAMES = 1 << 40
"""More frames than any stream has. Lengths are evaluated here to find their limits."""

FAR_END = 1 << 45
"""The length of the stream that a model reads before the end: beyond ``FAR_FRAMES``, and far from an
overflow when the model multiplies it."""

UNBOUNDED = 1 << 62
"""The end of a stream that has not ended, and a number of frames or pulses without a bound: no position reaches it,
and a sum of it and a position fits into an int64."""
