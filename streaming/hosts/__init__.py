"""Hosts, which give access to devices: PortAudio, a file, a test."""
