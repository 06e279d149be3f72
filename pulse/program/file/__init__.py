"""Program files: written, and read and checked as the file of a stranger. The model is not needed to run one."""
