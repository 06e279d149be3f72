"""Programs: pulsed models as rows of kernels, their streams, and their files.

Streams read a program, which makes streams. Modules have no circular imports, so streams of any backend take a
``StreamedProgram``, and those of native kernels a ``NativeExecutable``: a ``Program`` that does not make streams yet.
``KernelProgram`` makes them; ``NativeProgram`` (compiled) and ``StoredProgram`` (of a file) are based on it.
"""

from pulse.program.file.stored_program import read_program
from pulse.program.program import Program as Program

Program.load = staticmethod(read_program)
