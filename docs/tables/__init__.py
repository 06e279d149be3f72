"""The tables of docs/ that are made from the code: ``python -m docs.tables`` writes all of them."""
