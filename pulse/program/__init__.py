"""Programs: pulsed models as rows of kernels, their streams, and their files."""

from pulse.program.file.stored_program import read_program
from pulse.program.program import Program as Program

Program.reader = read_program
