"""Every family of writers; importing this registers them."""

from pulse.onnx.write import attention as attention
from pulse.onnx.write import conv as conv
from pulse.onnx.write import elementwise as elementwise
from pulse.onnx.write import ends as ends
from pulse.onnx.write import loop as loop
from pulse.onnx.write import matrix as matrix
from pulse.onnx.write import memory as memory
from pulse.onnx.write import recurrent as recurrent
from pulse.onnx.write import resize as resize
from pulse.onnx.write import scan as scan
from pulse.onnx.write import scatter as scatter
from pulse.onnx.write import shape as shape
