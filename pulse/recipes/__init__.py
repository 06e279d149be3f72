"""Recipes: TOML files that describe how models are called, from sound to sound; see docs/recipes.md."""
