"""Programs: pulsed models as rows of kernels, their streams, and their files.

Streams read a program, which makes streams. Modules have no circular imports, so two classes have two halves each:

    =================  ====================  ==========================
    programs           below streams         above, based on the other
    =================  ====================  ==========================
    of any backend     ``Executable``        ``Program``
    of native kernels  ``NativeExecutable``  ``NativeStreams``
    =================  ====================  ==========================

``NativeExecutable`` is based on ``Program``; ``NativeProgram`` (compiled) and ``StoredProgram`` (of a file) on
``NativeStreams``.
"""

from pulse.program.file.stored_program import read_program
from pulse.program.program import Program as Program

Program.reader = read_program
