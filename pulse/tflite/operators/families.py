"""All operators of TFLite: importing this fills the registry."""

from pulse.tflite.operators import concat as concat
from pulse.tflite.operators import control as control
from pulse.tflite.operators import conv as conv
from pulse.tflite.operators import cumulative as cumulative
from pulse.tflite.operators import elementwise as elementwise
from pulse.tflite.operators import elementwise_activation as elementwise_activation
from pulse.tflite.operators import gather as gather
from pulse.tflite.operators import matmul as matmul
from pulse.tflite.operators import norm as norm
from pulse.tflite.operators import pad as pad
from pulse.tflite.operators import pool as pool
from pulse.tflite.operators import quantize as quantize
from pulse.tflite.operators import recurrent as recurrent
from pulse.tflite.operators import recurrent_svdf as recurrent_svdf
from pulse.tflite.operators import reduce as reduce
from pulse.tflite.operators import resize as resize
from pulse.tflite.operators import shape as shape
from pulse.tflite.operators import shape_blocks as shape_blocks
from pulse.tflite.operators import slice as slice
from pulse.tflite.operators import source as source
from pulse.tflite.operators import spectral as spectral
