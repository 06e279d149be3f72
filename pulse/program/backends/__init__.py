"""The backends of a pulsed model: which code computes each node, and the program that each backend makes."""
