"""Live audio: devices, the line from one to the other, and the account of it."""
