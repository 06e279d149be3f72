"""Programs without Python: a model as a library with a C interface (docs/deploy.md)."""
