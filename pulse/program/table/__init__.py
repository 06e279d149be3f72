"""The table of a program: its memories, the places of tensors in them, its rows, and their cost."""
