"""The measurements of ``python -m bench``, one module for each, and their results."""
