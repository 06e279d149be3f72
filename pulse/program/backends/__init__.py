"""The backends of a pulsed model: which code computes each node, and the programs of numpy and of several backends."""
