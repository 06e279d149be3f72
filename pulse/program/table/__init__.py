"""The table of a program: memories, the tensors in them, rows, and their cost."""
