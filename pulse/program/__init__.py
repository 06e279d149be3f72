"""Programs: pulsed models as rows of kernels, their streams, and their files."""

from pulse.program.program import Program as Program
from pulse.program.stored_program import read_program

Program.reader = read_program
