"""The table of a program: memories, the places of tensors in them, rows, and their cost."""
