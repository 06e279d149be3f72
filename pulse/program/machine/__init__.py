"""The compiled loop that runs a table, on one thread or several, and compiled calls for arrays and for bytes."""
