"""Programs: pulsed models as rows of kernels, their streams, and their files.

Streams read a program, which makes streams. Modules have no circular imports, so two classes have two halves each:

    =================  ====================  =====================
    programs           what streams read     the whole, above them
    =================  ====================  =====================
    of any backend     ``Executable``        ``Program``
    of native kernels  ``NativeExecutable``  ``KernelProgram``
    =================  ====================  =====================

Each is based on the one before, in this order. ``NativeProgram`` (compiled) and ``StoredProgram`` (of a file) are
based on ``KernelProgram``, the class that callers test.
"""

from pulse.program.file.stored_program import read_program
from pulse.program.program import Program as Program

Program.reader = read_program
