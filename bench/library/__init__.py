"""Libraries of ``pulse build``, timed from C and from Python."""
