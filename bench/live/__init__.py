"""Ways to take sound from an audio callback to a model and back, beside each other while Python is busy."""
