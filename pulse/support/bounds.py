"""Numbers of frames that no stream reaches, and how many are too many to hold; each for one purpose."""

MOST_FRAMES = 1 << 24
"""No pulse, window or padding has more: it would be a mistake, and memory would run out. Nor has a stream whose time is
estimated."""

FAR_FRAMES = 1 << 40
"""More frames than any stream has. Lengths are evaluated there to see what becomes of them."""

FAR_END = 1 << 45
"""What a model that asks for the length of its stream gets before the end: beyond ``FAR_FRAMES``, and far from an
overflow when the model multiplies it."""

FAR = 1 << 62
"""The end of a stream that has not ended, and a number of frames or pulses without a bound: no position reaches it,
and a sum of it and a position fits into an int64."""
