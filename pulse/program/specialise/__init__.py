"""Machine code for single rows of a program, with their fields as constants."""
