"""One peer of the benchmark: prepares a problem and times repetitions of it, on command over a pipe (see peers.c).

usage: peers.py keops|keops-tuned|blas-tile|fastkron THREADS
reads   setup SECONDS AREA WORDS…   answers   ready | absent REASON | error REASON
        once                        answers   rate FIGURE      (the area's unit; kernel: Mpair/s, kron: GF/s)

Both flavours of KeOps are the same program: the flags that differ (CXXFLAGS, the cache folder) come from the environment.
One thread is timed by the processor time of this process, several by the wall clock, like ours.
"""
import concurrent.futures
import functools
import glob
import math
import os
import sys
import time

answers = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)  # what compilers and libraries print is no answer
peer, threads = sys.argv[1], int(sys.argv[2])
os.environ["OPENBLAS_NUM_THREADS"] = "1"  # tiles are what runs in parallel
os.environ["MKL_NUM_THREADS"] = "1"
import numpy as np  # noqa: E402  (after the thread counts)

clock = time.process_time if threads == 1 else time.perf_counter
TYPES = {"f32": np.float32, "f64": np.float64}


def drop_broken_caches():
    """KeOps rewrites its tables at its end and cannot start from ones that were cut short (a pickle ends with a stop)."""
    for path in glob.glob(os.environ.get("KEOPS_CACHE_FOLDER", "/nonexistent") + "/*/*.pkl"):
        with open(path, "rb") as table:
            whole = table.read()[-1:] == b"."
        if not whole:
            os.remove(path)


# sum_j k(x_i, y_j) b_j in KeOps' language; g is the inverse lengthscale (squared and halved for the Gaussian).
DISTANCE = "Sqrt(SqDist(x,y))"
KEOPS = {
    "gaussian": "Exp(-SqDist(x,y)*g)*b",
    "gaussian-ard": "Exp(-WeightedSqDist(g,x,y))*b",
    "exponential": f"Exp(-{DISTANCE}*g)*b",
    "laplacian": "Exp(-Sum(Abs(x-y))*g)*b",
    "matern32": f"(IntCst(1)+g*{DISTANCE})*Exp(-{DISTANCE}*g)*b",
    "matern52": f"(IntCst(1)+g*{DISTANCE}+Square(g*{DISTANCE})/IntCst(3))*Exp(-{DISTANCE}*g)*b",
    "rational-quadratic": "Inv(IntCst(1)+SqDist(x,y)*g)*b",
    "rational-quadratic-power": "Exp(RatCst(-7,10)*Log(IntCst(1)+SqDist(x,y)*g))*b",
    "inverse-multiquadric": "Rsqrt(IntCst(1)+SqDist(x,y)*g)*b",
    "cauchy": "Inv(IntCst(1)+SqDist(x,y)*g)*b",
    "energy": f"-{DISTANCE}*g*b",
    "linear": "(x|y)*g*b",
    "polynomial": "Pow((x|y)*g+IntCst(1),3)*b",
    "sigmoid": "(IntCst(1)-IntCst(2)*Inv(IntCst(1)+Exp(IntCst(2)*g*(x|y))))*b",
}
SCALE = {"gaussian": 0.5, "gaussian-ard": 0.5, "matern32": 3**0.5, "matern52": 5**0.5, "rational-quadratic": 0.5, "rational-quadratic-power": 1 / 1.4}


def radial(function):
    def tile(x, y):
        d2 = (x * x).sum(1)[:, None] + (y * y).sum(1)[None, :] - 2 * (x @ y.T)
        return function(np.maximum(d2, 0, out=d2))

    return tile


def matern(scale, polynomial):
    def tile(d2):
        s = scale * np.sqrt(d2)
        return polynomial(s) * np.exp(-s)

    return radial(tile)


# The same on 256 x 1024 tiles of the expanded square, what Falkon does on a CPU; the kernel in place where it can be.
TILE = {
    "gaussian": radial(lambda d2: np.exp(np.multiply(d2, -0.5, out=d2), out=d2)),
    "exponential": radial(lambda d2: np.exp(np.negative(np.sqrt(d2, out=d2), out=d2), out=d2)),
    "matern32": matern(3**0.5, lambda s: 1 + s),
    "matern52": matern(5**0.5, lambda s: 1 + s + s * s / 3),
    "rational-quadratic": radial(lambda d2: 1 / (1 + 0.5 * d2)),
    "rational-quadratic-power": radial(lambda d2: (1 + d2 / 1.4) ** -0.7),
    "inverse-multiquadric": radial(lambda d2: 1 / np.sqrt(1 + d2)),
    "cauchy": radial(lambda d2: 1 / (1 + d2)),
    "energy": radial(lambda d2: -np.sqrt(d2)),
    "linear": lambda x, y: x @ y.T,
    "polynomial": lambda x, y: (x @ y.T + 1) ** 3,
    "sigmoid": lambda x, y: np.tanh(x @ y.T),
}
TILE["gaussian-ard"] = TILE["gaussian"]  # a division of the points beforehand


def keops_product(name, dtype, d, r, x, y, b):
    from pykeops.numpy import Genred

    weights = d if name == "gaussian-ard" else 1
    aliases = [f"x=Vi({d})", f"y=Vj({d})", f"b=Vj({r})", f"g=Pm({weights})"]
    scheme = {"sum_scheme": "direct_sum"} if peer == "keops-tuned" else {}
    product = Genred(KEOPS[name], aliases, reduction_op="Sum", axis=1, **scheme)
    g = np.full(weights, SCALE.get(name, 1.0), dtype)
    return lambda rows: product(x[:rows], y, b, g, backend="CPU")


def tile_product(name, dtype, d, r, x, y, b):
    tile, pool = TILE[name], concurrent.futures.ThreadPoolExecutor(threads)

    def block(i, rows, out):
        for j in range(0, len(y), 1024):
            out[i : i + 256] += tile(x[i : min(i + 256, rows)], y[j : j + 1024]) @ b[j : j + 1024]

    def product(rows):
        out = np.zeros((rows, r), dtype)
        if threads == 1:
            for i in range(0, rows, 256):
                block(i, rows, out)
        else:
            list(pool.map(lambda i: block(i, rows, out), range(0, rows, 256)))
        return out

    return product


def kernel(seconds, name, type_name, d, r, m, n):
    """Mpair/s of sum_j k(x_i, y_j) b_j, points N(0, 1/D); m = 0: so many rows that a repetition lasts `seconds`."""
    if peer == "fastkron":
        return None
    d, r, m, n, dtype = int(d), int(r), int(m), int(n), TYPES[type_name]
    make = tile_product if peer == "blas-tile" else keops_product
    if name not in (TILE if peer == "blas-tile" else KEOPS):
        return None
    random = np.random.default_rng(1)
    most = m or 20000
    x, y = (np.ascontiguousarray(random.standard_normal((count, d)) / d**0.5, dtype) for count in (most, n))
    product = make(name, dtype, d, r, x, y, np.ascontiguousarray(random.standard_normal((n, r)), dtype))
    product(1 if m else 64)  # compiles

    def rate(rows):
        start = clock()
        product(rows)
        return rows * n / (clock() - start)

    rows = m or int(min(most, max(256, seconds * rate(256) / n)))
    return lambda: rate(rows) / 1e6


@functools.cache
def fastkron_library():
    """FastKron's x86 library by its own Python binding; a thin one: numbers in, one C call. One handle a process."""
    import importlib.util

    pattern = os.path.join(os.path.dirname(np.__file__), "..", "pyfastkron", "FastKronX86*.so")
    found = glob.glob(pattern)
    if not found:
        raise ImportError("pyfastkron is not installed")
    spec = importlib.util.spec_from_file_location("FastKronX86", found[0])
    library = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(library)
    handle = library.init()
    library.initX86(handle)
    return library, handle


def shuffled(x, factors):
    """Rows of x times the Kronecker product, the last factor first, in NumPy."""
    for factor in reversed(factors):
        slices = x.reshape(len(x), -1, len(factor))
        x = np.ascontiguousarray((slices @ factor).transpose(0, 2, 1)).reshape(len(x), -1)
    return x


def kron(seconds, form, type_name, x_trans, f_trans, m, *shape):
    """GF/s of Y = X (F_1 x … x F_n) (mkm, X is M x K) or of Y = (F_1 x … x F_n) X (kmm): FastKron."""
    if peer != "fastkron":
        return None
    library, handle = fastkron_library()
    x_trans, f_trans, m, dtype, left = x_trans == "1", f_trans == "1", int(m), TYPES[type_name], form == "kmm"
    sizes = []
    for item in shape[0].split(","):
        size, _, times = item.partition("^")
        p, _, q = size.partition("x")
        sizes += [(int(p), int(q or p))] * int(times or 1)
    ps, qs = [p for p, _ in sizes], [q for _, q in sizes]
    random = np.random.default_rng(1)
    # F takes p elements to q: p x q on the right, q x p on the left, and the other way round where it is stored transposed
    plain = [random.standard_normal(size, dtype) / dtype(size[0] ** 0.5) for size in sizes]
    factors = [np.ascontiguousarray(f if left == f_trans else f.T) for f in plain]
    k, l = math.prod(ps), math.prod(qs)
    x = np.resize(random.standard_normal(1000003, dtype)[: m * k], (k, m) if left != x_trans else (m, k))
    z = np.full((l, m) if left else (m, l), np.nan, dtype)
    _, most = library.gekmmSizes(handle, m, len(ps), ps, qs)
    scratch = [np.empty(most, dtype) for _ in range(2)]
    pointers = [f.ctypes.data for f in factors]
    op = [library.Op.N, library.Op.T]
    call = getattr(library, ("s" if dtype == np.float32 else "d") + ("gekmm" if left else "gemkm"))
    head = (handle, library.Backend.X86)
    tail = (z.ctypes.data, 1.0, 0.0, 0, *(part.ctypes.data for part in scratch))
    if left:
        arguments = (*head, len(ps), qs, ps, m, pointers, op[f_trans], x.ctypes.data, op[x_trans], *tail)
    else:
        arguments = (*head, m, len(ps), ps, qs, x.ctypes.data, op[x_trans], pointers, op[f_trans], *tail)
    call(*arguments)
    rows = sorted({0, m // 2, m - 1})
    exact = shuffled((x if left == x_trans else x.T)[rows], plain)
    mine = (z.T if left else z)[rows]
    if not np.abs(mine - exact).max() <= (1e-3 if dtype == np.float32 else 1e-10) * np.sqrt(np.square(exact).mean()):
        raise ValueError("a wrong result")

    width, flops = k, 0
    for p, q in reversed(sizes):
        width = width // p * q
        flops += 2 * m * width * p

    def rate(calls):
        start = clock()
        for _ in range(calls):
            call(*arguments)
        return calls, clock() - start

    calls, taken = rate(1)
    while taken < seconds / 8:
        calls, taken = rate(4 * calls)
    calls = max(1, int(calls * seconds / taken))

    def once(kept=(x, z, factors, scratch)):  # the library has their addresses only
        return 1e-9 * calls * flops / rate(calls)[1]

    return once


AREAS = {"kernel": kernel, "kron": kron}


def setup(seconds, area, *words):
    return AREAS[area](float(seconds), *words) if area in AREAS else None


drop_broken_caches()
once = None
for line in sys.stdin:
    verb, *words = line.split()
    try:
        if verb == "setup":
            once = setup(*words)
            print("ready" if once else "absent: no such problem", file=answers)
        else:
            print(f"rate {once():.6g}", file=answers)
    except ImportError as reason:
        print(f"absent: {reason}", file=answers)
    except Exception as reason:  # the driver leaves this peer out and says why
        print("error", " ".join(str(reason).split())[:200], file=answers)
