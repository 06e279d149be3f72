"""Products: of windows with constant weights (``product``), and of two run-time operands in batches (``batches``)."""
