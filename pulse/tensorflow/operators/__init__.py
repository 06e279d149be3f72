"""The operators of TensorFlow, by family: one function for each; importing this registers them."""

from pulse.tensorflow.operators import audio as audio
from pulse.tensorflow.operators import axes as axes
from pulse.tensorflow.operators import control as control
from pulse.tensorflow.operators import conv as conv
from pulse.tensorflow.operators import cudnn as cudnn
from pulse.tensorflow.operators import elementwise as elementwise
from pulse.tensorflow.operators import lists as lists
from pulse.tensorflow.operators import loop as loop
from pulse.tensorflow.operators import matmul as matmul
from pulse.tensorflow.operators import norm as norm
from pulse.tensorflow.operators import pool as pool
from pulse.tensorflow.operators import quantize as quantize
from pulse.tensorflow.operators import recurrent as recurrent
from pulse.tensorflow.operators import reduce as reduce
from pulse.tensorflow.operators import shape as shape
from pulse.tensorflow.operators import slicing as slicing
from pulse.tensorflow.operators import spectral as spectral
