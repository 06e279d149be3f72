"""Simulated audio devices on a virtual clock, for tests of live runs without a sound card."""
