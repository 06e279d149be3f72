"""A fleet: what a lost worker costs its streams, and on paper what many streams need."""
