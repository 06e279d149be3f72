"""Whatever has the devices: PortAudio, a file, a test."""
