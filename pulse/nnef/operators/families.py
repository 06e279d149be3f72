"""All operators of NNEF: importing this fills the registry."""

from pulse.nnef.operators import concat as concat
from pulse.nnef.operators import conv as conv
from pulse.nnef.operators import cumulative as cumulative
from pulse.nnef.operators import elementwise as elementwise
from pulse.nnef.operators import gather as gather
from pulse.nnef.operators import matmul as matmul
from pulse.nnef.operators import norm as norm
from pulse.nnef.operators import pad as pad
from pulse.nnef.operators import pool as pool
from pulse.nnef.operators import recurrent as recurrent
from pulse.nnef.operators import reduce as reduce
from pulse.nnef.operators import resize as resize
from pulse.nnef.operators import scan as scan
from pulse.nnef.operators import scatter as scatter
from pulse.nnef.operators import search as search
from pulse.nnef.operators import shape as shape
from pulse.nnef.operators import slice as slice
from pulse.nnef.operators import source as source
from pulse.nnef.operators import spectral as spectral
from pulse.nnef.operators import time as time
