"""The streams of a program, whatever its backend: the protocols of states and lanes, what they take, how they end."""
