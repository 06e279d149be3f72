"""The numba backend's streams: one by one, in groups of lanes, and in blocks of sixteen with interleaved memories."""
