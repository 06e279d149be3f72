"""Hosts: access to devices through PortAudio."""
