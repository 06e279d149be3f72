"""Sound and frames in files and pipes: formats, channels and rates, and a run from a source to a target."""
