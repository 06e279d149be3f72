"""The results as tables in the terminal, as docs/performance.md and as pictures."""
