"""PortAudio: its library, its devices, its streams, and what is done when its server goes away."""
