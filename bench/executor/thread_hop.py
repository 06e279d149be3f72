"""The time to wake a thread and then an event loop: a lower bound of what an executor adds to a pulse."""

import threading
import time

import anyio
import numpy as np

from pulse.jit.events import NativeEvent


async def bare_hop_us(count: int, period_s: float) -> float:
    """Return the p50 in us of the time from an event of one thread to the answer of another, over ``count`` periods."""
    request, answered, ended = NativeEvent(), NativeEvent(), threading.Event()

    def answer() -> None:
        request.wait()
        while not ended.is_set():
            answered.set()
            request.wait()

    thread = threading.Thread(target=answer)
    thread.start()
    took_ns, at_s = list[int](), anyio.current_time()
    try:
        for _ in range(count):
            at_s += period_s
            await anyio.sleep_until(at_s)
            begun_ns = time.perf_counter_ns()
            request.set()
            await anyio.wait_readable(answered.to_read)
            answered.wait()
            took_ns.append(time.perf_counter_ns() - begun_ns)
    finally:
        ended.set()
        request.set()
        thread.join()
        request.close()
        answered.close()
    return float(np.median(took_ns)) / 1e3
