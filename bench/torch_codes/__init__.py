"""Published PyTorch codes, as their authors wrote them, through ``pulse.from_torch``."""
