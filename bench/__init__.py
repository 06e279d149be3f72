"""Models and peers to measure this project against. Not part of the installed package."""
