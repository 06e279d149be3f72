"""What PyTorch and modules do otherwise during an export: ``exporter`` enters all, ``functions`` replaces calls."""
