"""TFLite files: verified, read, and translated to typed ops."""
