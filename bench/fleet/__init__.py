"""A fleet: the cost of a lost worker for its streams, and a calculation for many streams."""
