"""The terminal: output that cannot control it, keys, bars of progress."""
