"""Ways to take sound from an audio callback to a model and back, side by side while Python is busy."""
