"""Files of TFLite: every offset is checked, then the graph is read."""
