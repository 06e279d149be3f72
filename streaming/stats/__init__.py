"""Statistics of a live run: values, files, reports and pictures."""
