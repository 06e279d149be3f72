"""Reading a recipe as a model."""

from pulse.errors import LoadError
from pulse.loading.format import Content, Reading
from pulse.models import TypedModel
from pulse.recipes.whole import recipe_model
from pulse.support.wording import spell


def read_recipe_content(content: Content, reading: Reading) -> TypedModel:
    """The whole model of a recipe, a file or in the metadata of one. Raises LoadError."""
    values = {
        "inputs": reading.inputs,
        "constants": reading.constants,
        "signature": reading.signature,
        **reading.chunking.given_options,
    }
    for option, value in values.items():
        if option != "pulse" and (value or option == "states"):
            raise LoadError(
                f"{content.path or 'the model'}: a recipe itself describes how its models are called; omit "
                f"{spell(option)}, and write {option} in the stage that it is for"
            )
    return recipe_model(
        content.source, {"ignore_value_info": reading.ignore_value_info, "budget": reading.budget}
    )
