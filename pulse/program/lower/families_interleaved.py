"""The conversions of all instructions for sixteen streams: importing this fills the registry.

It is apart from ``families``, because most programs never need it.
"""

from pulse.program.lower import attention_interleaved as attention_interleaved
from pulse.program.lower import conv_interleaved as conv_interleaved
from pulse.program.lower import copy_interleaved as copy_interleaved
from pulse.program.lower import elementwise_interleaved as elementwise_interleaved
from pulse.program.lower import matmul_interleaved as matmul_interleaved
from pulse.program.lower import norm_interleaved as norm_interleaved
from pulse.program.lower import pool_interleaved as pool_interleaved
from pulse.program.lower import recurrent_interleaved as recurrent_interleaved
from pulse.program.lower import reduce_interleaved as reduce_interleaved
from pulse.program.lower import scan_interleaved as scan_interleaved
from pulse.program.lower import spectral_interleaved as spectral_interleaved
from pulse.program.lower import time_interleaved as time_interleaved
