"""The reader: from a file, bytes or a ModelProto to a Model as the file states it."""
