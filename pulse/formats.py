"""The formats of models, one row each; importing this registers them. ONNX is what no row recognises."""

from pulse.loading.formats import Content, Format, Reading, register
from pulse.models import Model, TypedModel
from pulse.recipes.recognition import holds_recipe, is_recipe
from pulse.tensorflow.likeness import is_tensorflow


def _recipe(content: Content, reading: Reading) -> TypedModel:
    from pulse.recipes.content import read_recipe_content

    return read_recipe_content(content, reading)


def _tensorflow(content: Content, reading: Reading) -> Model:
    from pulse.tensorflow.content import read_content

    return read_content(content, reading)


for row in (
    Format("recipe", is_recipe, _recipe),
    Format("TensorFlow", is_tensorflow, _tensorflow),
    Format("recipe in metadata", holds_recipe, _recipe),
):
    register(row)
