"""The cost of the executor in addition to the model."""
