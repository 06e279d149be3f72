"""What is measured, proved or written of a model, and the reports of it."""
