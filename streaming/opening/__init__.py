"""Models opened by their paths or names, with the rates of their streams: for commands, servers and fleets."""
