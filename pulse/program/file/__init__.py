"""Write program files, and read them with all checks that an untrusted file needs. They run without the model."""
