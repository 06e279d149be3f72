"""The formats of models, one row each; importing this registers them. ONNX is what no row recognises."""

from pulse.loading.formats import Content, Format, Reading, register
from pulse.models import TypedModel
from pulse.recipes.recognition import holds_recipe, is_recipe


def _recipe(content: Content, reading: Reading) -> TypedModel:
    from pulse.recipes.content import read_recipe_content

    return read_recipe_content(content, reading)


for row in (
    Format("recipe", is_recipe, _recipe),
    Format("recipe in metadata", holds_recipe, _recipe),
):
    register(row)
