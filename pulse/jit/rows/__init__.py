"""Rows of a table: the fields of an instruction, operands as pointers, the elements that they reach, and cuts."""
