"""What can be known of the wires of a model as its file states it, from inputs and from outputs."""
