"""How models come in: ``load`` opens whatever says what a model is, in one way for every call and command."""
