"""The README of a library."""

from pulse.c_library.library_contents import LibraryContents
from pulse.c_library.texts import fill
from pulse.c_library.vector import TestVector
from pulse.facts import dtype_name, shape_text
from pulse.interface import Port
from pulse.support.printable import printable
from pulse.support.report import byte_size
from pulse.support.wording import count_of

LIBC = ("memcpy", "memmove", "memset")
JUDGED_TEXT = (
    "It compares every frame with the offline model, and allows for the effect of rounding on this model."
)
UNJUDGED_TEXT = (
    "The library was made from a program file, which has no offline model. So the vector has the program's output\n"
    "where it was built, and does not say how much others may differ: where numbers differ, the exit code is 3."
)


def readme(
    contents: LibraryContents, target: str, math_functions: tuple[str, ...], vector: TestVector
) -> str:
    """Describe the folder, the ports, the delays, and their use; ``math_functions`` are functions of libm."""
    program = contents.program
    rounded = "" if program.activations == "f32" else f", {program.activations} activations"
    rows = [
        *(_row("input", port, contents) for port in program.inputs),
        *(_row("output", port, contents) for port in program.outputs),
    ]
    more = {
        "TARGET": target,
        "PULSE": str(program.pulse),
        "WEIGHTS": f"{byte_size(program.weights.size)}, {program.form}{rounded}",
        "MEMORY": byte_size(contents.memory_bytes),
        "NEEDS": ", ".join((*LIBC, *math_functions)),
        "PORTS": "\n".join(rows),
        "LINK": " -lm" if math_functions else "",
        "STEPS": str(vector.steps),
        "JUDGED": JUDGED_TEXT if vector.has_tolerances else UNJUDGED_TEXT,
        "RUN": " ".join(("test/vector.bin", *([contents.weights_file] if contents.external_weights else []))),
        "BESIDE": fill("weights/readme.md", contents) if contents.external_weights else "",
    }
    return fill("readme.md", contents, more)


def _row(role: str, port: Port, contents: LibraryContents) -> str:
    name = printable(port.name).replace("|", "\\|")
    cells = [f"{role} {name}", shape_text(port.shape), dtype_name(port.dtype)]
    if not port.streams:
        cells += ["given to every call" if role == "input" else "known at the end", "", ""]
    else:
        rate = contents.rate_of(port)
        delay = count_of(port.delay, "frame") + (f", {1000 * port.delay / rate:.4g} ms" if rate else "")
        cells += [f"{port.frames} along axis {port.axis}", delay if role == "output" else ""]
        cells.append(f"{rate:g} per second" if rate else "not known")
    return f"| {' | '.join(cells)} |"
