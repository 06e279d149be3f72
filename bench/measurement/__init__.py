"""How time is measured: alternating rounds, the roofline of the machine, its power, its description."""
