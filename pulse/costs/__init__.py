"""What a model costs: multiply-adds, parameters, memory."""
