"""Reading: files to nodes, functions inlined, loops raised, effects put in order, nodes to a model."""
