"""The runtimes that this project is compared with, and their contest over one model."""
