"""Blocks of any size in, pulses out: what sessions, executors and live runs share."""
