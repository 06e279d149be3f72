"""Programs without Python: compiling, linking and writing the folder of a library (docs/deploy.md)."""
