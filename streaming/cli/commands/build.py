"""pulse build: a model as a library for programs without Python."""

from pathlib import Path

from streaming.cli import options
from streaming.cli.options import ModelOptions, ReportOptions, RoundingOptions, option, takes_groups


@takes_groups
def build(
    model: options.ModelPath = None,
    *,
    model_options: ModelOptions,
    target: str | None = option(
        "Processor: x86-64-v2, x86-64-v3, x86-64-v4, x86-64-v4-vnni, x86-64-v4-bf16, x86-64-v4-avxvnni, "
        "aarch64, armv7 or wasm32. Default: the best level of this machine.",
        metavar="LEVEL",
    ),
    output: Path | None = option(
        "Folder to write. Default: the name of the model, in the current folder.",
        "--output",
        "-o",
        metavar="FOLDER",
    ),
    name: str | None = option(
        "Prefix of the functions and files. Default: the model's name.", metavar="NAME"
    ),
    plugin: list[str] | None = option(
        "Also build a plug-in: ladspa (with a virtual microphone for PipeWire), lv2 or clap. May be repeated.",
        metavar="KIND",
    ),
    rounding: RoundingOptions,
    external_weights: bool = option(
        "Write the weights to NAME.weights next to the library, for a program to map or read.",
        "--external-weights",
        default=False,
    ),
    check: bool = option(
        "Run the library on its test vector, if this machine can.", "--check/--no-check", default=True
    ),
    report_options: ReportOptions,
) -> None:
    """Write a model as a library for C and C++: machine code, weights and one header, without Python.

    The folder has a static and a shared library, a header, files for CMake and pkg-config, a README with the delay and
    the rates, and a test vector with a program that runs it.

    Examples:
      pulse build model.onnx --pulse 160 --target x86-64-v3 -o out/
      pulse build recipe.toml --target aarch64 -o out/   audio to audio
      pulse build --target wasm32 -o out/                the built-in denoiser in a browser
      pulse build recipe.toml --plugin lv2 -o out/       a plug-in
      pulse build model.pulse -o out/                    a program file
    """
    from pulse.errors import InputError
    from streaming.cli.model_opening import open_model
    from streaming.deploy.building import build_model, find_target
    from streaming.deploy.function_names import identifier, require_identifier

    opened = open_model(model, model_options)
    symbol = identifier(opened.title) if name is None else require_identifier(name)
    folder, plugins = output or Path(symbol), tuple(dict.fromkeys(plugin or ()))
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: is a file; give the name of a folder with --output")
    program = opened.compile("numba", rounding)
    library = build_model(
        opened=opened,
        program=program,
        name=symbol,
        target=find_target(target),
        folder=folder,
        checks=check,
        plugins=plugins,
        external_weights=external_weights,
    )
    report_options.print(library)
