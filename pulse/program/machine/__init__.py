"""The compiled loop that runs a table, on one thread or several, and its calls that take arrays or bytes."""
