"""A fleet: servers of streams on several machines. Ray places and watches them; pulses never pass through it."""
