"""Write program files, and read them with every check that an untrusted file needs. Running one needs no model."""
