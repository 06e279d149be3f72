"""``pulse run --live``: its options, its display and its report."""
