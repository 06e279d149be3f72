"""What every layer uses: records, errors in words, bounds of memory and time."""
