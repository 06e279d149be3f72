"""From an offline model to a pulsed one: relations, offsets and delays."""
