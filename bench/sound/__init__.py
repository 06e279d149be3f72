"""Recipes of published models from audio to audio, compared with their authors' loops."""
