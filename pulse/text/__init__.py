"""Graphs as text: listings, pictures for Graphviz, and queries for parts."""
