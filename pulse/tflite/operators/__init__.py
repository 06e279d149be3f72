"""One function for each operator, by family; importing the package registers them all."""

from pulse.tflite.operators import activation as activation
from pulse.tflite.operators import blocks as blocks
from pulse.tflite.operators import control as control
from pulse.tflite.operators import conv as conv
from pulse.tflite.operators import dense as dense
from pulse.tflite.operators import elementwise as elementwise
from pulse.tflite.operators import movement as movement
from pulse.tflite.operators import pool as pool
from pulse.tflite.operators import quantize as quantize
from pulse.tflite.operators import recurrent as recurrent
from pulse.tflite.operators import reduce as reduce
from pulse.tflite.operators import shape as shape
from pulse.tflite.operators import slicing as slicing
from pulse.tflite.operators import spectral as spectral
from pulse.tflite.operators import svdf as svdf
