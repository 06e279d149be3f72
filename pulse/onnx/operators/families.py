"""All operators of ONNX: importing this fills the registry."""

from pulse.support.registry import import_siblings

import_siblings(__name__)
