"""What a live run tells of itself: statistics, statistics in files, reports."""
