"""The tables of docs/ that are made from the code: ``python -m tests.tables`` writes all of them."""
