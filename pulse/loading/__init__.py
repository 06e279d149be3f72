"""Loading of models: ``load`` opens every kind of source for all calls and commands."""
