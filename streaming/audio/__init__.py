"""Audio and frames in files and pipes: formats, channels and rates, and runs from a source to a target."""
