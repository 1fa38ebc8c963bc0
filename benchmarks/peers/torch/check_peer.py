"""What PyTorch multiplies with, and how fast: asked before it is called a peer."""
import re
import time

import torch

from lines import serve


def describe(threads):
    """Libraries of linear algebra that this process has loaded (Linux only), and whether MKL is built in."""
    torch.set_num_threads(threads)
    torch.randn(64, 64) @ torch.randn(64, 64)
    try:
        maps = open("/proc/self/maps").read()
    except OSError:
        maps = ""
    files = sorted(set(re.findall(r"/\S*lib(?:openblas|blas|cblas|mkl|blis|atlas)\S*", maps)))
    return {"version": torch.__version__, "libraries": files, "hasMkl": torch.backends.mkl.is_available()}


def sgemm(size, seconds):
    """FLOP/s of the best of the products of two [size, size] F32 matrices within that time."""
    a, b = torch.randn(size, size), torch.randn(size, size)
    best, end = 0.0, time.perf_counter() + seconds
    while time.perf_counter() < end:
        started = time.perf_counter()
        a @ b
        best = max(best, 2 * size**3 / (time.perf_counter() - started))
    return {"flops": best}


serve({"describe": describe, "sgemm": sgemm})
