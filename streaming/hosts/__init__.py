"""Hosts, which give access to devices: PortAudio, files, or simulated devices."""
