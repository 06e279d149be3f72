"""The rules, by family; importing this registers them."""

from pulse.onnx.rules import conv as conv
from pulse.onnx.rules import elementwise as elementwise
from pulse.onnx.rules import matmul as matmul
from pulse.onnx.rules import movement as movement
from pulse.onnx.rules import norm as norm
from pulse.onnx.rules import recurrent as recurrent
from pulse.onnx.rules import reduce as reduce
from pulse.onnx.rules import shape as shape
from pulse.onnx.rules import slicing as slicing
