"""``pulse run --live``: what it takes, shows and tells."""
