"""Programs: pulsed models as rows of kernels, their streams, and their files.

Streams read a program, and a program makes streams. Modules have no circular imports, so its class has two halves:

    =================  ====================  ==========================
    programs           half below streams    half above streams
    =================  ====================  ==========================
    of any backend     ``Executable``        ``Program``
    of native kernels  ``NativeExecutable``  ``NativeStreams``
    =================  ====================  ==========================

The lower half has the data that streams read: ports, lengths, tables, images. The upper half adds what users call:
``spawn``, ``save``, ``specialise``. Two classes are based on ``NativeStreams``: ``NativeProgram``, which is also a
``CompiledProgram`` (a program with its model), and ``StoredProgram``, which is read from a file.
"""

from pulse.program.file.stored_program import read_program
from pulse.program.program import Program as Program

Program.reader = read_program
