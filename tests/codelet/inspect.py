#!/usr/bin/env python3
"""The code of device texts, looked at: registers, spills, occupancy and the instructions per pair of the inner loop, and what
they allow on an A100 and an H100 beside what the formula itself would. Prints the tables of doc/device-code.md.

usage: inspect.py TEXTS [TEXT]  TEXTS: the built tests/codelet/device_texts; `make device-table` calls it. TEXT: one of them alone
Needs nvcc (CUDA_HOME or PATH) and nvdisasm, which is in the toolkit or, alone, in PyPI's nvidia-cuda-nvdisasm."""
import concurrent.futures
import glob
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile

# Per multiprocessor and clock, by compute capability: NVIDIA's CUDA programming guide, "Arithmetic Instructions" (binary32 and
# binary64 add, multiply, multiply-add; special functions), 32 words of shared memory, 4 schedulers of 32 lanes. Multiprocessors
# and boost clocks are those of NVIDIA's data sheets (A100 SXM4 80 GB: 19.5 and 9.7 TFLOPS; H100 SXM5: 67 and 34), as is memory.
CARDS = {
    "A100": dict(arch="sm_80", sms=108, ghz=1.41, f32=64, f64=32, mufu=16, alu=64, words=32, issue=128, gbs=2039, shared=164),
    "H100": dict(arch="sm_90", sms=132, ghz=1.98, f32=128, f64=64, mufu=16, alu=64, words=32, issue=128, gbs=3350, shared=228),
}

# What the function of a kernel takes beyond its distance: multiply-add slots and special functions in binary32. An exponential,
# reciprocal or root is one special function there. In binary64 it is a polynomial or Newton's steps: 14, 5 and 5 slots.
EXP, RCP, ROOT, LOG = "exp", "rcp", "root", "log"
SLOTS64 = {EXP: 14, RCP: 5, ROOT: 5, LOG: 16}
FUNCTION = {
    "GAUSSIAN": (1, [EXP]), "LAPLACIAN": (1, [EXP]), "EXPONENTIAL": (1, [ROOT, EXP]), "MATERN32": (4, [ROOT, EXP]),
    "MATERN52": (5, [ROOT, EXP]), "RATIONAL_QUADRATIC": (1, [RCP]), "INVERSE_MULTIQUADRIC": (1, [ROOT]), "CAUCHY": (1, [RCP]),
    "ENERGY": (1, [ROOT]), "LINEAR": (1, []), "POLYNOMIAL": (3, []), "SIGMOID": (4, [EXP, RCP]),
}
OF_PRODUCT = ("LINEAR", "POLYNOMIAL", "SIGMOID")


def tool(name):
    homes = [os.environ.get("CUDA_HOME", ""), "/usr/local/cuda"] + glob.glob(os.path.join(sys.prefix, "lib/python3*/site-packages/nvidia/cu*"))
    for home in homes:
        path = os.path.join(home, "bin", name)
        if home and os.path.exists(path):
            return path
    return shutil.which(name) or sys.exit(f"inspect.py: no {name} here: CUDA_HOME, /usr/local/cuda, PATH and Python's packages were looked at")


def option(options, name):
    return int(re.search(rf"-D{name}=(\d+)", options).group(1))


def compile_text(source, options, arch, work):
    """Words of ptxas by kernel, and the instructions of each."""
    with tempfile.NamedTemporaryFile(suffix=".cubin", dir=work) as cubin:
        log = subprocess.run([tool("nvcc"), "-cubin", f"-arch={arch}", "-Xptxas", "-v", *options.replace(",", "\\,").split(), "-o", cubin.name, source],
                             check=True, capture_output=True, text=True).stderr
        listing = subprocess.run([tool("nvdisasm"), cubin.name], check=True, capture_output=True, text=True).stdout
    facts = {}
    for part in log.split("Compiling entry function '")[1:]:
        spills = re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", part)
        shared = re.search(r"(\d+) bytes smem", part)
        facts[part.split("'")[0]] = dict(registers=int(re.search(r"Used (\d+) registers", part).group(1)),
                                         spills=int(spills.group(1)) + int(spills.group(2)), shared=int(shared.group(1)) if shared else 0)
    for part in re.split(r"\n\.text\.", listing)[1:]:
        facts[part.split(":")[0]]["code"] = instructions(part)
    return facts


def instructions(listing):
    """(address, predicate, operation, target address or None) of each."""
    labels, rows, waiting = {}, [], []
    for line in listing.splitlines():
        label = re.match(r"(\.L_x_\d+):", line)
        if label:
            waiting.append(label.group(1))
            continue
        found = re.match(r"\s+/\*([0-9a-f]{4,})\*/\s+(@!?U?P\w+\s+)?([A-Z0-9_.]+)(.*)", line)
        if not found:
            continue
        address = int(found.group(1), 16)
        for name in waiting:
            labels[name] = address
        waiting = []
        target = re.search(r"`\((\.L_x_\d+)\)", found.group(4)) if found.group(3).startswith("BRA") else None
        rows.append((address, bool(found.group(2)), found.group(3), target and target.group(1)))
    return [(a, p, o, labels.get(t)) for a, p, o, t in rows]


def hot_loop(code):
    """The loop with the most multiply-adds that stages nothing: what runs over the pairs."""
    best, most = None, 3
    for at, _, operation, target in code:
        if target is None or target > at:
            continue
        body = [row for row in code if target <= row[0] <= at]
        names = [row[2] for row in body]
        if any(n.startswith(("STS", "BAR")) for n in names) or sum(n.startswith("LDS") for n in names) == 0:
            continue
        slots = sum(n.startswith(("FFMA", "DFMA")) for n in names)
        if slots > most or (slots == most and best and len(body) < len(best)):
            best, most = body, slots
    return best


def classes(name):
    word = name.split(".")[0]
    if word in ("FFMA", "FADD", "FMUL"):
        return {"f32": 1}
    if word in ("DFMA", "DADD", "DMUL", "DSETP"):
        return {"f64": 1}
    if word == "MUFU":
        return {"mufu": 1}
    if word == "LDS":
        return {"words": 4 if ".128" in name else 2 if ".64" in name else 1}
    if word in ("BRA", "BSSY", "BSYNC", "NOP", "WARPSYNC"):
        return {}
    return {"alu": 1}


def counts_of(rows):
    total = {"f32": 0, "f64": 0, "mufu": 0, "alu": 0, "words": 0, "issue": 0, "vector": 0, "loads": 0}
    for _, _, name, _ in rows:
        total["issue"] += 1
        total["loads"] += name.startswith("LDS")
        total["vector"] += name.startswith("LDS") and (".64" in name or ".128" in name)
        for key, n in classes(name).items():
            total[key] += n
    return total


def mix(code, options):
    """Instructions of the inner loop by class, per pair; (counts, True) where a loop over dimensions is all that stages
    nothing: then per pair and dimension. What a forward branch can skip is left out: the end of a tile and the slow ways of functions."""
    body = hot_loop(code)
    if body is None:
        return None, False
    first, last = body[0][0], body[-1][0]
    pairs, d = option(options, "ROWS") * option(options, "COLS"), option(options, "D")
    product = any(f"KERNEL_{k}" in options for k in OF_PRODUCT)
    prefix = ("FFMA", "DFMA") if product else ("FADD", "DADD")
    dims_in = lambda rows: sum(r[2].startswith(prefix) for r in rows) / pairs
    inner = [(t, a) for a, _, _, t in body[:-1] if t is not None and first < t <= a]
    skipped = [(a, t) for a, p, _, t in body if p and t is not None and a < t <= last and not any(a < i[0] < t for i in inner)]
    rows = [r for r in body if not any(a < r[0] < t for a, t in skipped)]
    n = dims_in(rows)
    if d == 0 or (not inner and round(n) < d):
        return {k: v / (pairs * n) for k, v in counts_of(rows).items()}, True
    total = {}
    for key, value in counts_of([r for r in rows if not any(b <= r[0] <= e for b, e in inner)]).items():
        total[key] = value
    for begin, end in inner:
        part = [r for r in rows if begin <= r[0] <= end]
        trips = max(1, d // max(1, round(dims_in(part))))
        for key, value in counts_of(part).items():
            total[key] += trips * value
    return {k: v / pairs for k, v in total.items()}, False


def counted(options, card, chunked):
    """Pairs per clock of a multiprocessor that the formula allows, and what bounds them."""
    kernel = re.search(r"KERNEL_(\w+)", options).group(1)
    f64, d, r = option(options, "ZLG_F64"), option(options, "D"), option(options, "RC")
    distance = 1 if kernel in OF_PRODUCT else 2 + (not option(options, "ISOTROPIC"))
    if chunked:
        return card["f64" if f64 else "f32"] / distance, "FMA"
    slots, functions = FUNCTION[kernel]
    if kernel == "RATIONAL_QUADRATIC" and option(options, "TWICE_ALPHA") == 0:
        slots, functions = 2, [LOG, EXP]
    slots += d * distance + r
    bounds = {"memory": memory(options, card)}
    if f64:
        bounds["FMA"] = card["f64"] / (slots + sum(SLOTS64[f] for f in functions))
    else:
        bounds["FMA"] = card["f32"] / slots
        if functions:
            bounds["MUFU"] = card["mufu"] / len(functions)
    name = min(bounds, key=bounds.get)
    return bounds[name], name


def memory(options, card):
    """Pairs per clock if a group of threads reads its points and right-hand sides from the card's memory, and not from its cache."""
    tile = option(options, "RT") * option(options, "ROWS")
    bytes_of_point = (option(options, "D") + option(options, "RC")) * (8 if option(options, "ZLG_F64") else 4)
    return card["gbs"] / (card["sms"] * card["ghz"]) * tile / bytes_of_point


def occupancy(card, threads, fact):
    """Warps that a multiprocessor holds of 64: registers in steps of 256 a warp, 1 KiB of shared memory of its own a group."""
    warps = math.ceil(threads / 32)
    by_registers = 65536 // (math.ceil(fact["registers"] * 32 / 256) * 256) // warps
    groups = min(by_registers, 64 // warps, 32, int(card["shared"] * 1024 // (fact["shared"] + 1024)))
    return groups * warps


def allowed(per_pair, card):
    bounds = {n: card[n] / per_pair[n] for n in ("f32", "f64", "mufu", "alu", "words", "issue") if per_pair[n] > 0}
    name = min(bounds, key=bounds.get)
    return bounds[name], {"f32": "FMA", "f64": "FMA", "mufu": "MUFU", "alu": "ALU", "words": "LDS"}.get(name, name)


def label(options):
    d, dc = option(options, "D"), option(options, "DC")
    words = [re.search(r"KERNEL_(\w+)", options).group(1).lower().replace("_", " "), "f64" if option(options, "ZLG_F64") else "f32",
             f"d {d}" if d else f"d > {dc}", f"r {option(options, 'RC')}"]
    if "RATIONAL" in options:
        words.append("any power" if option(options, "TWICE_ALPHA") == 0 else "power 1")
    if not option(options, "ISOTROPIC"):
        words.append("ARD")
    if option(options, "RT") == 1:
        words.append(f"{option(options, 'ROWS')} row{'s' if option(options, 'ROWS') > 1 else ''} a thread, few rows")
    return ", ".join(words)


def product_row(card, options, fact):
    threads = option(options, "RT") * option(options, "JT")
    per_pair, chunked = mix(fact["code"], options)
    if per_pair is None:
        return f"| {label(options)} | {fact['registers']} | {fact['spills']} | {occupancy(card, threads, fact)} | no inner loop found |"
    limit, why = counted(options, card, chunked)
    can, by = allowed(per_pair, card)
    if not chunked and can > memory(options, card):
        can, by = memory(options, card), "memory"
    scale = card["sms"] * card["ghz"]
    fma = per_pair["f32"] + per_pair["f64"]
    unit = "*" if chunked else ""
    return (f"| {label(options)} | {fact['registers']} | {fact['spills']} | {occupancy(card, threads, fact)} | {fma:.1f}{unit} | {per_pair['mufu']:.1f} | "
            f"{per_pair['words']:.2f} | {100 * per_pair['vector'] / max(per_pair['loads'], 1e-9):.0f} % | {per_pair['issue']:.1f} | "
            f"{limit * scale:.0f}{unit} ({why}) | {can * scale:.0f}{unit} ({by}) | {min(can / limit, 1):.2f} |")


def stages(options):
    """(lead, p, q, trail) of each factor that a launch of kron_factor applies."""
    found = [[int(n) for n in words.split(",")[:4]] for words in re.findall(r"-DS\d=([\d,]+)", options)]
    return found or [[1, option(options, "P"), option(options, "Q"), 1]]


def chain_label(options):
    sizes = [f"{p}x{q}" if p != q else str(p) for _, p, q, _ in stages(options)]
    words = [" ".join(sizes) if len(set(sizes)) > 1 or len(sizes) == 1 else f"{sizes[0]}^{len(sizes)}", "f64" if option(options, "ZLG_F64") else "f32"]
    x_run, y_run, columns = option(options, "X_RUN"), option(options, "Y_RUN"), option(options, "COLUMNS")
    words.append("turned round" if x_run != y_run else "columns" if option(options, "VECTORS_FASTEST") else
                 f"trail {x_run}" if x_run < columns else "long trail")
    return ", ".join(words)


def chain_row(card, options, fact):
    """A launch of kron_factor: TFLOP/s by its instructions, and by memory, X read and Y written once."""
    f64, p, q = option(options, "ZLG_F64"), option(options, "P"), option(options, "Q")
    flops = sum(2 * lead * a * b * trail for lead, a, b, trail in stages(options))
    rows = hot_loop(fact["code"])
    memory_allows = flops / ((p + q) * (8 if f64 else 4)) * card["gbs"] / 1000
    begin = (f"| {chain_label(options)} | {option(options, 'COLUMNS')} | {fact['registers']} | {fact['spills']} | {fact['shared'] / 1024:.1f} | "
             f"{occupancy(card, option(options, 'THREADS'), fact)} |")
    if rows is None:
        return f"{begin} no loop over rows | | | {memory_allows:.1f} | |"
    fmas = sum(r[2].startswith("DFMA" if f64 else "FFMA") for r in rows)
    # A load of 16 bytes is four elements of a factor, the same for all lanes that form the same results: one word's time.
    words = sum((2 if ".64" in r[2] else 1) for r in rows if r[2].startswith("LDS"))
    per_clock = {"FMA": card["f64" if f64 else "f32"], "LDS": card["words"] * fmas / max(words, 1), "issue": card["issue"] * fmas / len(rows)}
    by = min(per_clock, key=per_clock.get)
    can = 2 * per_clock[by] * card["sms"] * card["ghz"] / 1000
    return (f"{begin} {fmas / max(words, 1):.1f} | {100 * fmas / len(rows):.0f} % | {can:.1f} ({by}) | "
            f"{memory_allows:.1f} | {min(can / min(memory_allows, 2 * per_clock['FMA'] * card['sms'] * card['ghz'] / 1000), 1):.2f} |")


def table(head, rows):
    """Rows that say the same are one."""
    if rows:
        print(f"\n| {head} |", "|---" * (head.count("|") + 1) + "|", *dict.fromkeys(rows), sep="\n")


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    texts = sys.argv[1]
    run = lambda *words: subprocess.run([texts, *words], check=True, capture_output=True, text=True).stdout
    jobs = list(dict.fromkeys(tuple(line.split(" ", 1)) for line in run("--list").splitlines()))
    jobs = [job for job in jobs if job[0] in sys.argv[2:] or len(sys.argv) == 2]
    with tempfile.TemporaryDirectory() as work, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        sources = {}
        for name in {name for name, _ in jobs}:
            sources[name] = os.path.join(work, name + ".cu")
            with open(sources[name], "w") as file:
                file.write(run("--source", name))
        for name, card in CARDS.items():
            made = list(pool.map(lambda job: compile_text(sources[job[0]], job[1], card["arch"], work), jobs))
            print(f"\n### {name} ({card['arch']})")
            table("kernel_product | registers | spilled | warps | FMA | MUFU | LDS words | vector loads | all | counted | mix allows | of it",
                  [product_row(card, job[1], facts["kernel_product"]) for job, facts in zip(jobs, made) if job[0] == "kernel_product"])
            table("kron_factor, a launch | columns | registers | spilled | KiB | warps | FMA a load | FMA of all | mix allows | memory allows | of it",
                  [chain_row(card, job[1], facts["kron_factor"]) for job, facts in zip(jobs, made) if job[0] == "kron_factor"])
            table("others | registers | spilled | warps",
                  [f"| {kernel}, {'f64' if '-DZLG_F64=1' in job[1] else 'f32'} | {fact['registers']} | {fact['spills']} | {occupancy(card, 64, fact)} |"
                   for job, facts in zip(jobs, made) for kernel, fact in facts.items() if kernel not in ("kernel_product", "kron_factor")])


if __name__ == "__main__":
    main()
