"""All operators of TensorFlow: importing this fills the registry."""

from pulse.tensorflow.operators import concat as concat
from pulse.tensorflow.operators import control as control
from pulse.tensorflow.operators import control_lists as control_lists
from pulse.tensorflow.operators import control_loop as control_loop
from pulse.tensorflow.operators import conv as conv
from pulse.tensorflow.operators import cumulative as cumulative
from pulse.tensorflow.operators import elementwise as elementwise
from pulse.tensorflow.operators import gather as gather
from pulse.tensorflow.operators import matmul as matmul
from pulse.tensorflow.operators import norm as norm
from pulse.tensorflow.operators import pad as pad
from pulse.tensorflow.operators import pool as pool
from pulse.tensorflow.operators import quantize as quantize
from pulse.tensorflow.operators import recurrent as recurrent
from pulse.tensorflow.operators import recurrent_cudnn as recurrent_cudnn
from pulse.tensorflow.operators import reduce as reduce
from pulse.tensorflow.operators import scatter as scatter
from pulse.tensorflow.operators import search as search
from pulse.tensorflow.operators import shape as shape
from pulse.tensorflow.operators import shape_blocks as shape_blocks
from pulse.tensorflow.operators import slice as slice
from pulse.tensorflow.operators import source as source
from pulse.tensorflow.operators import spectral as spectral
from pulse.tensorflow.operators import spectral_audio as spectral_audio
