"""Published PyTorch models, as their authors wrote them, through ``pulse.from_torch``."""
