"""Loading of models: ``load`` opens every kind of source, in one way for all calls and commands."""
