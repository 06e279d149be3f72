import time, sys
t0=time.perf_counter()
import numpy as np
from pulse.program.kernels.registry import kernel, device, Kernel
from pulse.program.kernels.pointer import *
from pulse.program.kernels.simd import *
from pulse.program.table import TableBuilder, link
from pulse.program import machine
t1=time.perf_counter()
@device
def scale(x, a): return x * a
@kernel
def axpy(row, bases):
    y, x, n, a = f32(row,bases,0), f32(row,bases,1), number(row,2), real(row,3)
    av = vsplat(a)
    i = 0
    while i + LANES <= n:
        vstore(y, i, vfma(av, vload(x, i), vload(y, i)))
        i += LANES
    if i < n:
        m = n - i
        acc = vload_part(y, i, m)
        acc += scale(vload_part(x, i, m), a)
        vstore_part(y, i, m, acc)
@kernel
def nothing(row, bases): pass
a=np.arange(100,dtype=np.float32); 
st=np.concatenate([a,np.ones(100,np.float32)])
reg=[np.zeros(8,np.uint8),st.view(np.uint8)]
b=TableBuilder(); b.add(axpy, operand(1,400), operand(1,0), 100, real_bits(2.0))
t=b.finish(); machine.run_python(t,reg); print(st[100:105], st[-1])
t2=time.perf_counter()
l=link(t); t3=time.perf_counter()
bases=np.array([r.ctypes.data for r in reg],np.int64)
machine.run(l.ctypes.data,1,bases.ctypes.data); t4=time.perf_counter()
print(st[100:105], st[-1])
print('import',t1-t0,'link',t3-t2,'run first',t4-t3, axpy.cached)
nothing.address; t5=time.perf_counter(); print('nothing', t5-t4)
if len(sys.argv)>1: print([l for l in axpy.compiled._library.get_asm_str().split('\n') if 'mm' in l][:60])
