"""The lowering of all ops: importing this fills the registry."""

from pulse.program.lower import attention as attention
from pulse.program.lower import concat as concat
from pulse.program.lower import conv as conv
from pulse.program.lower import conv_transposed as conv_transposed
from pulse.program.lower import cumulative as cumulative
from pulse.program.lower import elementwise as elementwise
from pulse.program.lower import fault as fault
from pulse.program.lower import gather as gather
from pulse.program.lower import matmul as matmul
from pulse.program.lower import norm as norm
from pulse.program.lower import pad as pad
from pulse.program.lower import pool as pool
from pulse.program.lower import quantize as quantize
from pulse.program.lower import quantize_rows as quantize_rows
from pulse.program.lower import recurrent as recurrent
from pulse.program.lower import recurrent_small as recurrent_small
from pulse.program.lower import reduce as reduce
from pulse.program.lower import resize as resize
from pulse.program.lower import scan as scan
from pulse.program.lower import scatter as scatter
from pulse.program.lower import search as search
from pulse.program.lower import shape as shape
from pulse.program.lower import slice as slice
from pulse.program.lower import time as time
