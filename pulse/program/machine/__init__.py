"""The compiled loop that runs a table, alone or on several threads, and calls of it that take arrays or bytes."""
