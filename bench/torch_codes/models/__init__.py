"""Published PyTorch models, made smaller, with random weights: one module for each kind of network."""
