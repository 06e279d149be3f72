"""What a live run tells of itself: accounts, statistics in files, reports."""
