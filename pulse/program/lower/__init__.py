"""The lowering of ops to instructions, in a module for each family as in ``pulse.ops``.

``families`` imports all of them; the conversions for interleaved memories, ``interleaved``, are imported on demand.
"""
