"""Helpers of every layer: records, texts of messages, bounds of memory and time."""
