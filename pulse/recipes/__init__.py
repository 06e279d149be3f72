"""Recipes: TOML files that describe how models are called, from audio to audio; see docs/recipes.md."""
