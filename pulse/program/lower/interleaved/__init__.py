"""Instructions of one stream as those for sixteen streams with interleaved memories, in a module for each family.

``families`` imports all of them; most programs need none.
"""
