"""Recipes: TOML files that say how models are called, from sound to sound; see docs/recipes.md."""
