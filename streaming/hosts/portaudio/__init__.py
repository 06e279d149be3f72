"""PortAudio: its library, devices and streams, and recovery from a lost server."""
