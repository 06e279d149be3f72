"""The file formats of models, one row each; importing this registers them. ONNX is what no row recognises."""

from pathlib import Path

from pulse.errors import LoadError
from pulse.loading.format_registry import FORMATS, Content, Format, ReadOptions
from pulse.loading.onnx_files import read_onnx
from pulse.models import Model, TypedModel, model_of
from pulse.nnef.recognition import holds_graph
from pulse.onnx.registry import DOMAIN_SUPPORTS
from pulse.program.file.container import is_program
from pulse.program.file.stored_program import StoredProgram, read_program
from pulse.recipes.recognition import holds_recipe, is_recipe
from pulse.support.wording import spell
from pulse.tensorflow.recognition import is_tensorflow
from pulse.tensorflow.registry import DOMAIN
from pulse.tflite.recognition import is_tflite


def _program(content: Content, options: ReadOptions) -> StoredProgram:
    assert isinstance(content.source, Path | bytes)
    return read_program(content.source)


def _recipe(content: Content, options: ReadOptions) -> TypedModel:
    from pulse.recipes.recipe_model import read_recipe_content

    return read_recipe_content(content, options)


def _tensorflow(content: Content, options: ReadOptions) -> Model:
    from pulse.tensorflow.tensorflow_model import load

    assert isinstance(content.source, Path | bytes)
    return load(content.source, **options.of_reader("signature"))


def _supports_tensorflow(op_type: str) -> bool:
    from pulse.tensorflow.operators import families as families
    from pulse.tensorflow.registry import TRANSLATORS

    return op_type in TRANSLATORS


def _nnef(content: Content, options: ReadOptions) -> Model:
    from pulse.nnef.read.files import NnefFiles
    from pulse.nnef.read.reader import read_nnef

    assert isinstance(content.source, Path | bytes)
    if options.signature is not None:
        raise LoadError(f"{content.path or 'the model'}: NNEF has no signatures; omit {spell('signature')}")
    proto = read_nnef(NnefFiles.of(content.source), options.budget)
    return read_onnx(proto, **options.of_reader("ignore_value_info"))


def _tflite(content: Content, options: ReadOptions) -> Model:
    from pulse.tflite.read.reader import load

    assert isinstance(content.source, Path | bytes)
    return model_of(load(content.source, **options.of_reader("signature")))


FORMATS.extend(
    (
        Format("program", lambda content: is_program(content.head), _program),
        Format("TFLite", lambda content: is_tflite(content.head), _tflite),
        Format("NNEF", lambda content: holds_graph(content.path, content.head), _nnef),
        Format("recipe", is_recipe, _recipe),
        Format("TensorFlow", is_tensorflow, _tensorflow),
        Format("recipe in metadata", holds_recipe, _recipe),
    )
)

DOMAIN_SUPPORTS[DOMAIN] = _supports_tensorflow
