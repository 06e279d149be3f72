"""All kernels: importing this fills the registry."""

from pulse.program.kernels import attention as attention
from pulse.program.kernels import conv_depthwise as conv_depthwise
from pulse.program.kernels import conv_interleaved as conv_interleaved
from pulse.program.kernels import copy as copy
from pulse.program.kernels import cumulative as cumulative
from pulse.program.kernels import elementwise as elementwise
from pulse.program.kernels import fault as fault
from pulse.program.kernels import gather as gather
from pulse.program.kernels import matmul as matmul
from pulse.program.kernels import matmul_interleaved as matmul_interleaved
from pulse.program.kernels import matmul_product as matmul_product
from pulse.program.kernels import matmul_product_lanes as matmul_product_lanes
from pulse.program.kernels import norm as norm
from pulse.program.kernels import norm_interleaved as norm_interleaved
from pulse.program.kernels import recurrent as recurrent
from pulse.program.kernels import recurrent_gru as recurrent_gru
from pulse.program.kernels import recurrent_gru_small as recurrent_gru_small
from pulse.program.kernels import recurrent_interleaved as recurrent_interleaved
from pulse.program.kernels import recurrent_lanes as recurrent_lanes
from pulse.program.kernels import recurrent_lstm as recurrent_lstm
from pulse.program.kernels import reduce as reduce
from pulse.program.kernels import scan as scan
from pulse.program.kernels import scatter as scatter
from pulse.program.kernels import search as search
from pulse.program.kernels import spectral as spectral
from pulse.program.kernels import time as time
