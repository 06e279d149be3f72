"""A fleet: servers of streams on several machines. Ray places and monitors them; pulses do not pass through it."""
