"""Run a file through a model."""

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from pulse.errors import InputError
from pulse.interface import MAX_CHANNELS, Port, main_output
from pulse.program.program import Program
from streaming.audio.channels import OutputChoice
from streaming.audio.file_stream import stream_arrays, stream_audio
from streaming.audio.frame_files import add_leading_axes, read_arrays
from streaming.audio.output_files import OutputRoute
from streaming.audio.source import is_stream
from streaming.audio.target import OUTPUT_NAMES, Target
from streaming.audio.wav_stream import StreamFormat
from streaming.builtin import noisy_path
from streaming.cli.audio_inputs import open_audio_inputs, read_array_inputs
from streaming.cli.run_request import RunRequest
from streaming.cli.standard_output import take_stdout
from streaming.files.atomic import refuse_same
from streaming.opening.opened_model import OpenedModel
from streaming.reports.file_report import FileReport, builtin_snr_db
from streaming.routing import find_choice, find_output, is_playable, sound_inputs
from streaming.terminal.progress import progress


def run_file(opened: OpenedModel, program: Program, request: RunRequest) -> FileReport:
    """Run a model over a file of frames or audio.

    Raises InputError: a file cannot be read or written, or does not fit the model
    """
    if request.has_frames:
        return _run_frames(opened, program, request)
    return _run_audio(opened, program, request)


def _run_frames(opened: OpenedModel, program: Program, request: RunRequest) -> FileReport:
    if request.read is None:
        arrays, sources = read_array_inputs(program, request.audio.in_routes or ())
    else:
        sources = [request.read]
        arrays = read_arrays(request.read, [port.name for port in program.inputs])
    arrays = add_leading_axes(arrays, program.inputs)
    streaming = (port for port in program.outputs if port.streams)
    name = request.audio.output
    output = next(streaming, program.outputs[0]) if name is None else find_output(program, name)
    events = request.events
    path = request.target or Path(f"{opened.title}-{'out.npy' if events is None else 'events.csv'}")
    word = request.audio.format_name
    if events is None:
        target = Target.of_frames(path, word)
    else:
        target = Target.of_events(path, events, sources[0].stem, word)
    if not target.streamed:
        refuse_same(sources, [path])
    target = _with_stdout(target, text=not target.array)
    title = f"{', '.join(source.name for source in sources)} -> {path.name}"
    with progress(title, not target.is_terminal) as advance:
        deadline_s = opened.deadline_s(program.pulse)
        write = OutputRoute((OutputChoice(output),), target)
        result = stream_arrays(program, arrays, write, opened.rate_hz, deadline_s, advance)
    return FileReport(opened, program, result, ", ".join(map(str, sources)), str(path), [output.name])


def _run_audio(opened: OpenedModel, program: Program, request: RunRequest) -> FileReport:
    rate_hz, audio = _audio_rate_hz(opened, program), request.audio
    if request.events is not None and audio.subtype is not None:
        raise InputError("--subtype is for audio; omit it with --events")
    raw = None if audio.raw is None else StreamFormat.parse(audio.raw, rate_hz)
    routes = _routes(opened, program, request)
    routes = [
        replace(route, target=_with_stdout(route.target, request.events is not None)) for route in routes
    ]
    with ExitStack() as stack:
        inputs = open_audio_inputs(stack, program, audio.in_routes or (), request.read, audio.channel, raw)
        for route in routes:
            if not route.target.streamed:
                refuse_same([path for path in inputs.paths if not is_stream(path)], [route.target.path])
        title = f"{inputs.title} -> {', '.join(route.target.path.name for route in routes)}"
        with progress(title, not any(route.target.is_terminal for route in routes)) as advance:
            deadline_s = opened.deadline_s(program.pulse)
            result = stream_audio(program, inputs.routed, routes, rate_hz, inputs.arrays, deadline_s, advance)
    first = routes[0].target
    compares = request.model is None and request.read == noisy_path()
    return FileReport(
        opened=opened,
        program=program,
        result=result,
        source=", ".join(map(str, inputs.paths)),
        target=", ".join(str(route.target.path) for route in routes),
        outputs=list(dict.fromkeys(output.port.name for route in routes for output in route.outputs)),
        sources=inputs.routed,
        channel=audio.channel,
        snr_db=builtin_snr_db(first.path) if compares and first.is_audio and not first.streamed else None,
    )


def _audio_rate_hz(opened: OpenedModel, program: Program) -> int:
    """Return the rate of a model that takes audio. Raises InputError: it takes none, or its rate is unknown."""
    if sound_inputs(program):
        if opened.rate_hz is None:
            raise InputError(f"{opened.title}: the rate of its audio is unknown; give it, as in --rate 16000")
        return opened.rate_hz
    port_texts = "; ".join(port.label for port in program.inputs)
    once = " ".join(f"--constant {port.name}=VALUE" for port in program.inputs if not port.streams)
    raise InputError(
        f"{opened.title}: takes {port_texts}, not audio of one to {MAX_CHANNELS} channels; write a recipe with the "
        "stages before it (pulse recipe), or give its input, also audio of more channels, as .npy or .npz"
        + (f", or what does not stream with {once}" if once else "")
    )


def _routes(opened: OpenedModel, program: Program, request: RunRequest) -> list[OutputRoute]:
    """Return the target of each output. Raises InputError: there is no such output, or a file does not fit it."""
    sound_input, audio, events = sound_inputs(program)[0], request.audio, request.events
    if audio.out_routes:
        return _named_routes(program, sound_input, audio.out_routes, request)
    output = _output(program, sound_input, request)
    if events is not None:
        path = request.target or Path(f"{opened.title}-events.csv")
        source = "sound" if request.read is None else request.read.stem
        return [_of_frames((output,), Target.of_events(path, events, source, audio.format_name))]
    plays = is_playable(output.port, sound_input)
    usual = "denoised.wav" if request.model is None else f"{opened.title}-out{'.wav' if plays else '.npy'}"
    path = request.target or Path(usual)
    return [_route((output,), path, sound_input, request)]


def _output(program: Program, sound_input: Port, request: RunRequest) -> OutputChoice:
    """Return the output that is written: as named, else for events the first that is not audio.

    Raises InputError: there is no such output
    """
    if request.audio.output is not None:
        return find_choice(program, request.audio.output)
    playable = [port for port in program.outputs if is_playable(port, sound_input)]
    others = [port for port in program.outputs if port not in playable]
    port = main_output(playable, sound_input) if request.events is None else next(iter(others), None)
    return OutputChoice(port or program.outputs[0])


def _named_routes(
    program: Program, sound_input: Port, texts: list[str], request: RunRequest
) -> list[OutputRoute]:
    """Return the output routes of --out.

    Raises InputError: a text is not NAME=FILE, or a file does not fit its outputs
    """
    outputs: dict[str, list[OutputChoice]] = {}
    for text in texts:
        name, equals, path = text.partition("=")
        if not (name and equals and path):
            raise InputError(f"--out {text}: give NAME=FILE, such as speech=speech.wav")
        outputs.setdefault(path, []).append(find_choice(program, name))
    return [_route(tuple(choices), Path(path), sound_input, request) for path, choices in outputs.items()]


def _route(
    outputs: tuple[OutputChoice, ...], path: Path, sound_input: Port, request: RunRequest
) -> OutputRoute:
    """Route outputs to a file. Raises InputError: the file does not fit them."""
    usual = "wav" if is_playable(outputs[0].port, sound_input) else "csv"
    target = Target.of(path, usual, request.audio.format_name, request.audio.subtype)
    if not target.is_audio:
        return _of_frames(outputs, target)
    for output in outputs:
        if not is_playable(output.port, sound_input):
            raise InputError(
                f"{target.name}: output {output.name} is not audio at the rate of the input; write .npy or .csv"
            )
    return OutputRoute(outputs, target)


def _of_frames(outputs: tuple[OutputChoice, ...], target: Target) -> OutputRoute:
    """Route one output to a file of frames. Raises InputError: there are several, or it is a channel of one."""
    if len(outputs) > 1:
        names = ", ".join(output.name for output in outputs)
        raise InputError(
            f"{target.path}: holds the frames of one output, not of {names}; name a file for each"
        )
    for output in outputs:
        if output.channel is not None:
            raise InputError(f"{target.path}: holds whole frames; give the output {output.port.name}")
    return OutputRoute(outputs, target)


def _with_stdout(target: Target, text: bool) -> Target:
    """Return the target, with the descriptor of standard output if it writes there."""
    return replace(target, descriptor=take_stdout(text=text)) if str(target.path) in OUTPUT_NAMES else target
