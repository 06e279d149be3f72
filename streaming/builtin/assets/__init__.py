"""Scripts that write the built-in models and recordings; they run when these change, and never in use."""
