"""Costs of a model: multiply-adds, parameters, memory."""
