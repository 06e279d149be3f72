"""The computations behind the commands, and their reports."""
