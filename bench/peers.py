"""One peer of the benchmark: prepares a problem and times repetitions of it, on command over a pipe (see peers.c).

usage: peers.py keops|keops-tuned|blas-tile THREADS
reads   setup SECONDS AREA WORDS…   answers   ready | absent REASON | error REASON
        once                        answers   rate FIGURE      (the area's unit; kernel: Mpair/s)

Both flavours of KeOps are the same program: the flags that differ (CXXFLAGS, the cache folder) come from the environment.
One thread is timed by the processor time of this process, several by the wall clock, like ours.
"""
import concurrent.futures
import glob
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


AREAS = {"kernel": kernel}


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
