"""From an offline model to a pulsed one: relations, offsets, delays, and the proof that nothing changed."""
