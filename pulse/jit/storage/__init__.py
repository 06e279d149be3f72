"""Machine code that is found again: libraries of the package, files of functions, and the hashes that name them."""
