"""Recipes of published models from sound to sound, compared with their authors' loops."""
