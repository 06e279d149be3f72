"""Scripts that write the built-in models and sounds; they run when these change, and never in use."""
