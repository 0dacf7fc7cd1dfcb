#!/usr/bin/env python3
"""Measures zephonc against programs that use nothing of it, in pairs, one after the other, and prints ratios.

usage: run.py [--build build/release] [--corpus examples/data/photos] [--highres DIR] [--only 2,3,...,14]
              [--rounds 7] [--json FILE]

Each section states a floor (must be met) and a goal. A figure is the median over the rounds of a ratio whose two halves
were measured one right after the other; the spread behind it is the smallest and the largest such ratio. CPU time is
user plus system time of the process, as the kernel counts it, and start-up is left out by taking the difference of a
long and a short run. Run it on a machine that does nothing else.

  2  imagenet.zpl: CPU time per sample over a bare libjpeg-turbo loop; scaling from one to two threads
  3  a million trivial samples after another: time per sample, memory
  4  crop, flip, normalise, to_chw from DRAM to DRAM against memcpy, and against --no-optimize
  5  `check` on 200 lines; time to the first batch
  6  peak memory under --memory (needs --highres, a folder of large JPEG files)
  7  `check`, `fmt` and `convert` on 2,000 lines
  8  cost of the counters (needs valgrind and a second build, --without-counters), size of zephonc
  9  `lsp` on the file of 7: hover, completion and diagnostics after an edit
  10 `cache`: CPU time of four epochs with it over that without
  11 bench/orders: badly written programs against the same written by hand in the best order; digests must be equal
  12 bench/recipes: recipes from the literature, as written, by hand, and against the limit: decoding nothing but the
     pixels that are needed and writing what is delivered
  13 peak memory of shuffling 100,000 photographs

Sections 11 and 12 measure one epoch on one thread, whole processes, on hard links to those photographs whose sides have
at least 288 pixels (--photos of them). "As written" is the program without any rule (--no-optimize), and with the rules
that decide about kernels and memory alone (phase `physical plan`): what a compiler would do that fuses but keeps the
order. "By hand" is the program of the same file that has the best order, with all rules.
"""
import argparse
import array
import glob
import json
import math
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), ".."))
results = []
os.environ["ZEPHON_MEASURED"] = "off"  # what lies on this disk decides no plan; section 14 says where it does


def run(command, env=None, check=True):
    """-> (standard output, standard error, wall seconds, CPU seconds, peak resident bytes)"""
    start = time.perf_counter()
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        child = subprocess.Popen(command, stdout=out, stderr=err, env={**os.environ, **(env or {})}, cwd=ROOT)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        wall = time.perf_counter() - start
        out.seek(0), err.seek(0)
        text, errors = out.read(), err.read()
    if check and child.returncode != 0:
        sys.exit(f"{' '.join(command)}\nended with code {child.returncode}\n{errors}")
    return text, errors, wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def report(section, what, values, floor=None, goal=None, unit="", less=True, mean=False):
    """One line: figure, spread, verdict. `less`: a smaller figure is better. The figure is the median and the spread
    goes from the least to the largest; with `mean`, for ratios that swing with the machine's speed, they are the
    geometric mean and its 95% interval."""
    figure, low, high = statistics.median(values), min(values), max(values)
    if mean:
        logs = [math.log(value) for value in values]
        half = 1.96 * statistics.stdev(logs) / math.sqrt(len(logs)) if len(logs) > 1 else math.inf
        figure = math.exp(statistics.mean(logs))
        low, high = figure * math.exp(-half), figure * math.exp(half)
    meets = lambda limit: figure <= limit if less else figure >= limit
    verdict = ""
    if floor is not None:
        verdict = "goal met" if goal is not None and meets(goal) else "floor met" if meets(floor) else "FLOOR MISSED"
    limits = "" if floor is None else f"floor {floor:g}" + ("" if goal is None else f", goal {goal:g}")
    spread = f"[{low:.4g} .. {high:.4g}]"
    print(f"{section}  {what:<56} {figure:>9.4g} {unit:<4} {spread:<20} {limits:<22} {verdict}", flush=True)
    results.append({"section": section, "what": what, "figure": figure, "low": low, "high": high,
                    "unit": unit, "floor": floor, "goal": goal, "verdict": verdict})


class Bench:
    def __init__(self, options):
        self.options = options
        self.zephonc = os.path.join(options.build, "zephonc", "zephonc")
        self.bare = os.path.join(options.build, "bench", "bare_decode")
        self.corpus = os.path.abspath(options.corpus)
        self.files = len(glob.glob(os.path.join(glob.escape(self.corpus), "*", "*.jpg")))
        self.program = os.path.join(ROOT, "examples", "imagenet.zpl")

    def zephon(self, *arguments, env=None):
        text, errors, wall, cpu, peak = run([self.zephonc, "run", *arguments, "--json", "--progress", "never"], env)
        return json.loads(text), errors, wall, cpu, peak

    def decode(self, *arguments):
        return json.loads(run([self.bare, self.corpus, *arguments])[0])

    def imagenet(self, threads, *arguments):
        report, _, _, cpu, _ = self.zephon(self.program, f"root={self.corpus}", "--threads", str(threads), *arguments)
        return report["samples_per_second"], cpu, report["samples"]

    def section2(self):
        # Short runs in turn, so that a change of the machine's speed meets all four alike; the order alternates.
        # Two epochs of 2,400: the first batches pay for memory that the later ones find in the pool.
        epochs = ("--epochs", str(max(2, 4800 // max(1, self.files))))
        self.decode("--threads", "1")  # warms the page cache
        self.imagenet(1, "--take", "1")  # fills the kernel cache
        whole, decoding, scaling = [], [], []
        for turn in range(self.options.rounds):
            bare, ours = {}, {}
            for threads in ((1, 2), (2, 1))[turn % 2]:
                bare[threads] = self.decode("--threads", str(threads), *epochs)
                ours[threads] = self.imagenet(threads, *epochs)
            _, start_cpu, start_samples = self.imagenet(1, "--take", "1")
            cpu = (ours[1][1] - start_cpu) / (ours[1][2] - start_samples)
            whole.append(cpu / (bare[1]["cpu_seconds"] / bare[1]["samples"]))
            decoding.append(cpu / (bare[1]["decode_cpu_seconds"] / bare[1]["samples"]))
            scaling.append((ours[2][0] / ours[1][0]) / (bare[2]["samples_per_second"] / bare[1]["samples_per_second"]))
        report(2, "CPU per sample / bare loop (reads, decodes)", whole, 1.05, 0.95)
        report(2, "CPU per sample / bare decoding alone", decoding)
        report(2, "scaling 1 -> 2 threads / that of the bare loop (mean, 95%)", scaling, 0.95, None, less=False, mean=True)

    def section3(self):
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "trivial.zpl")
            with open(program, "w", encoding="utf-8") as file:
                file.write("zpl 1\n\npipeline trivial(n: int = 50_000_000) {\n  range(n)\n  | x = index * 3 + 1\n"
                           "  | filter x % 7 != 0\n  | select x\n  | batch(1024)\n}\n")
            times, memory = [], []
            for _ in range(max(3, self.options.rounds // 2)):
                _, _, _, cpu_short, peak_short = self.zephon(program, "n=5000000", "--threads", "1")
                _, _, _, cpu_long, peak_long = self.zephon(program, "n=50000000", "--threads", "1")
                times.append((cpu_long - cpu_short) / 45e6 * 1e9)
                memory.append((peak_long - peak_short) / 2**20)
        report(3, "CPU per input sample", times, 12, 5, "ns")
        report(3, "peak memory, 50 M samples minus 5 M samples", memory, 4, None, "MiB")
        # Steps that look at one row after the other, and sources that are cut or repeated.
        for steps in ("on_error(skip)", "take(n - 1)", "shuffle(buffer_size=1000)"):
            self.trivial_with(steps)

    def trivial_with(self, steps):
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "trivial.zpl")
            with open(program, "w", encoding="utf-8") as file:
                file.write(f"zpl 1\n\npipeline trivial(n: int = 1) {{\n  range(n)\n  | x = index * 3 + 1\n  | {steps}\n"
                           "  | filter x % 7 != 0\n  | select x\n  | batch(1024)\n}\n")
            times = []
            for _ in range(3):
                short = self.zephon(program, "n=500000", "--threads", "1")[3]
                times.append((self.zephon(program, "n=5000000", "--threads", "1")[3] - short) / 45e5 * 1e9)
        report(3, f"the same behind {steps}", times, unit="ns")

    def section4(self):
        kernel = os.path.join(self.options.build, "bench", "fused_kernel")
        if not os.path.exists(kernel):
            print("4  no fused_kernel in this build")
            return
        against_copy, against_written = [], []
        for _ in range(self.options.rounds):
            fused = json.loads(run([kernel])[0])
            against_copy.append(fused["bytes_per_second"] / fused["copy_bytes_per_second"])
            against_written.append(fused["speedup"])
        report(4, "bytes/s read and written / memcpy", against_copy, 0.8, 0.95, less=False)
        report(4, "fused / as written", against_written, 3, None, less=False)

    def section5(self):
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "long.zpl")
            with open(program, "w", encoding="utf-8") as file:
                file.write("zpl 1\n\npipeline long(n: int = 100) {\n  range(n)\n  | x0 = index * 3 + 1\n")
                file.writelines(f"  | x{i} = (x{i - 1} + index) % {i + 2}\n" for i in range(1, 192))
                file.write("  | select x191\n  | batch(8)\n}\n")
            check = [run([self.zephonc, "check", program])[2] * 1e3 for _ in range(3 * self.options.rounds)]
        report(5, "process time of `check`, 200 lines", check, 40, 20, "ms")
        cold, warm = [], []
        for _ in range(self.options.rounds):
            with tempfile.TemporaryDirectory() as cache:
                env = {"XDG_CACHE_HOME": cache, "HOME": cache}
                for into in (cold, warm):
                    bare = run([self.bare, self.corpus, "--first", "64"])[2]
                    first = self.zephon(self.program, f"root={self.corpus}", "mode=eval", "--threads", "1",
                                        "--take", "1", env=env)[2]
                    into.append((first - bare) * 1e3)
        report(5, "first batch minus bare decoding, no kernel cache", cold, 150, None, "ms")
        report(5, "first batch minus bare decoding, from the kernel cache", warm, 40, None, "ms")

    def section6(self):
        if not self.options.highres:
            print("6  skipped: give --highres DIR, a folder of large JPEG files in class folders or flat")
            return
        root = os.path.abspath(self.options.highres)
        pattern = "*.jpg" if glob.glob(os.path.join(glob.escape(root), "*.jpg")) else "*/*.jpg"
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "large.zpl")
            with open(program, "w", encoding="utf-8") as file:
                file.write("zpl 1\n\npipeline large(root: path) {\n" f'  files("{{root}}/{pattern}")\n  | shuffle()\n'
                           '  | image = bytes.decode_image(mode="rgb").random_resized_crop(224, 224).to_chw()\n'
                           "  | select image\n  | batch(4)\n}\n")
            limited, _, _, _, peak = self.zephon(program, f"root={root}", "--memory", "256M", "--epochs", "5")
            free = self.zephon(program, f"root={root}", "--epochs", "5")[0]
            base = limited["base_rss"]
            report(6, "peak minus base under --memory 256M", [(peak - base) / 2**20], 256, None, "MiB")
            report(6, "rate under the budget / without", [limited["samples_per_second"] / free["samples_per_second"]])
            # Whole pictures: how large they are is known only on the way.
            whole = os.path.join(folder, "whole.zpl")
            with open(whole, "w", encoding="utf-8") as file:
                file.write("zpl 1\n\npipeline whole(root: path) {\n" f'  files("{{root}}/{pattern}")\n'
                           "  | image = bytes.decode_image()\n  | select image\n  | batch(1)\n}\n")
            for budget in (64, 256):
                limited, _, _, _, peak = self.zephon(whole, f"root={root}", "--memory", f"{budget}M", "--epochs", "3")
                report(6, f"whole pictures: peak minus base under --memory {budget}M",
                       [(peak - limited["base_rss"]) / 2**20], budget, None, "MiB")
            _, errors, _, _, _ = run([self.zephonc, "run", program, f"root={root}", "--memory", "1M"], check=False)
            print("6  a budget of 1M is answered by: " + (errors.strip().split("\n") or [""])[0])

    def section7(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "long.zpl")
            with open(path, "w", encoding="utf-8") as file:
                file.write(long_program(2000))
            run([self.zephonc, "fmt", path])
            for command, floor in (["check"], 0.1), (["fmt", "--check"], None), (["convert"], None):
                walls = [run([self.zephonc, *command, path])[2] for _ in range(self.options.rounds)]
                report(7, f"{' '.join(command)} on 2,000 lines, whole process", walls, floor, None, "s")

    def section8(self):
        size = os.path.getsize(self.zephonc)
        report(8, "size of zephonc", [size / 2**20], unit="MiB")
        without = self.options.without_counters
        if not without or not shutil.which("valgrind"):
            print("8  counters skipped: needs valgrind and --without-counters BUILD (cmake -DZEPHON_COUNTERS=OFF)")
            return
        counts = []
        for build in (self.options.build, without):
            per_run = []
            for epochs in ("1", "2"):
                with tempfile.NamedTemporaryFile() as out:
                    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out.name}",
                               os.path.join(build, "zephonc", "zephonc"), "run", self.program, f"root={self.corpus}",
                               "--threads", "1", "--epochs", epochs, "--json", "--progress", "never"]
                    errors = run(command)[1]
                    per_run.append(int(next(line.split(":")[1] for line in errors.split("\n") if "Collected" in line)))
            counts.append(per_run[1] - per_run[0])
        report(8, "instructions with counters / without", [counts[0] / counts[1]], 1.01, None)

    def section10(self):
        with tempfile.TemporaryDirectory() as folder:
            programs = []
            for cache in ("", "  | cache()\n"):
                programs.append(os.path.join(folder, f"program{len(programs)}.zpl"))
                with open(programs[-1], "w", encoding="utf-8") as file:
                    file.write('zpl 1\n\npipeline kept(root: path) {\n  files("{root}/*/*.jpg") | shuffle()\n'
                               '  | image = bytes.decode_image(mode="rgb").resize(256, 256)\n' + cache +
                               "  | image = image.random_crop(224, 224).random_flip().to_chw()\n"
                               "  | select image\n  | batch(64)\n}\n")
            ratios = []
            for _ in range(max(3, self.options.rounds // 2)):
                plain, kept = (self.zephon(program, f"root={self.corpus}", "--epochs", "4", "--digest")
                               for program in programs)
                if plain[0]["digest"] != kept[0]["digest"]:
                    sys.exit("10 `cache` changed what is delivered")
                ratios.append(kept[3] / plain[3])
        report(10, "CPU of 4 epochs with `cache` over without", ratios)

    def cases(self, folder):
        for path in sorted(glob.glob(os.path.join(ROOT, "bench", folder, "*.zpl"))):
            if self.options.cases in path:
                yield os.path.basename(path)[:-len(".zpl")], path

    def compared(self, path, root, variants):
        """-> for each variant of a program the CPU seconds of its rounds, and what was delivered; in turn."""
        arguments = {name: (f"{path}:{pipeline}", f"root={root}", "--threads", "1", *more)
                     for name, (pipeline, *more) in variants.items()}
        # With caches of their own, which these fill: of kernels, and of what was measured of this data.
        caches = tempfile.TemporaryDirectory()
        env = {"XDG_CACHE_HOME": caches.name, "HOME": caches.name}
        first = {name: self.zephon(*arguments[name], "--digest", env=env)[0] for name in arguments}
        first |= {name: self.zephon(*arguments[name], env=env)[0] | {"digest": first[name]["digest"]} for name in first}
        if len({report["digest"] for report in first.values()}) != 1:
            sys.exit(f"{path}: digests differ: " + ", ".join(f"{n} {r['digest']}" for n, r in first.items()))
        cpu = {name: [] for name in arguments}
        for turn in range(self.options.rounds):
            for name in list(arguments)[::1 if turn % 2 == 0 else -1]:
                cpu[name].append(self.zephon(*arguments[name], env=env)[3])
        return cpu, first

    def section11(self):
        with tempfile.TemporaryDirectory(dir=beside(self.corpus)) as root:
            link_photos(self.corpus, root, self.options.photos, 288)
            for name, path in self.cases("orders"):
                cpu, first = self.compared(path, root, {
                    "written": ("written", "--no-optimize"), "kernels": ("written", "--disable", logical_rules()),
                    "optimised": ("written",), "hand": ("hand",)})
                same = first["optimised"]["plan_hash"] == first["hand"]["plan_hash"]
                over = lambda what: [a / b for a, b in zip(cpu[what], cpu["optimised"])]
                report(11, f"{name}: as written, no rule / optimised", over("written"))
                report(11, f"{name}: as written, kernels only / optimised", over("kernels"))
                report(11, f"{name}: optimised / by hand" + (" (the same plan)" if same else ""),
                       [a / b for a, b in zip(cpu["optimised"], cpu["hand"])], 1.05, None)

    def section12(self):
        gains, kernels = [], []
        with tempfile.TemporaryDirectory(dir=beside(self.corpus)) as root:
            link_photos(self.corpus, root, self.options.photos, 288)
            write_table(os.path.join(root, "table.csv"), 200_000)
            write_signal(os.path.join(root, "signal.i16"), 16_000_000)
            for name, path in self.cases("recipes"):
                cpu, first = self.compared(path, root, {
                    "written": ("written", "--no-optimize"), "kernels": ("written", "--disable", logical_rules()),
                    "optimised": ("written",), "hand": ("hand",)})
                median = {what: statistics.median(values) for what, values in cpu.items()}
                gains.append(median["written"] / median["optimised"])
                kernels.append(median["kernels"] / median["optimised"])
                over = lambda what: [a / b for a, b in zip(cpu[what], cpu["optimised"])]
                report(12, f"{name}: as written, no rule / optimised", over("written"))
                report(12, f"{name}: as written, kernels only / optimised", over("kernels"))
                report(12, f"{name}: optimised / by hand", [a / b for a, b in zip(cpu["optimised"], cpu["hand"])])
                limit = self.limit(path, root, first["hand"], bytes_delivered(self, path, root))
                if limit:
                    report(12, f"{name}: optimised / limit", [a / b for a, b in zip(cpu["optimised"], limit)])
        for what, values in ("no rule", gains), ("kernels only", kernels):
            report(12, f"as written, {what} / optimised, geometric mean", [statistics.geometric_mean(values)],
                   2 if what == "no rule" else None, None, less=False)

    def limit(self, path, root, run_of_it, bytes_written):
        """-> CPU seconds of decoding what the recipe needs, and of writing as much as it delivers; nothing for others."""
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if "decode_image" not in text:
            return []
        samples = run_of_it["samples"]
        arguments = [root]
        if "pipeline needed" in text:
            out = os.path.join(root, "needed")
            self.zephon(f"{path}:needed", f"root={root}", "--out", out, "--format", "jsonl")
            boxes = os.path.join(root, "boxes.txt")
            with open(boxes, "w", encoding="utf-8") as into:
                for part in sorted(glob.glob(os.path.join(out, "*.jsonl"))):
                    for line in open(part, encoding="utf-8"):
                        sample = json.loads(line)
                        into.write(" ".join(map(str, sample["box"])) + f" {sample['path']}\n")
            shutil.rmtree(out)
            arguments = ["--boxes", boxes]
        arguments += ["--first", str(samples), "--write", str(bytes_written)]
        run([self.bare, *arguments])
        return [run([self.bare, *arguments])[3] for _ in range(self.options.rounds)]

    def section13(self):
        count = 100_000
        with tempfile.TemporaryDirectory(dir=beside(self.corpus)) as root:
            photos = sorted(glob.glob(os.path.join(glob.escape(self.corpus), "*", "*.jpg")))
            for i in range(count):
                if i % 1000 == 0:
                    os.mkdir(os.path.join(root, f"{i // 1000:03}"))
                os.link(photos[i % len(photos)], os.path.join(root, f"{i // 1000:03}", f"{i % 1000:03}.jpg"))
            decode = '  | image = bytes.decode_image(mode="rgb").random_resized_crop(224, 224).random_flip().to_chw()\n'
            for shuffle in "shuffle(buffer_size=100_000)", "shuffle()":
                for name, steps in ("before decoding", f"  | {shuffle}\n{decode}"), \
                                   ("after decoding", f"{decode}  | {shuffle}\n"):
                    program = os.path.join(root, "shuffled.zpl")
                    with open(program, "w", encoding="utf-8") as file:
                        file.write('zpl 1\n\npipeline shuffled(root: path) {\n  files("{root}/*/*.jpg")\n' + steps +
                                   "  | select image\n  | batch(64)\n}\n")
                    _, _, wall, _, peak = self.zephon(program, f"root={root}", "--take", "20")
                    report(13, f"{shuffle} {name}: peak memory", [peak / 2**20], 200, None, "MiB")
                    report(13, f"{shuffle} {name}: seconds to the 20th batch", [wall], unit="s")

    def section14(self):
        """What the cost model says of a row against what the stages of the plan take, before and after calibration, and
        after a run over the same data."""
        vector = "[index, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]"
        long_vector = f"[{', '.join([vector] * 16)}].reshape([256])"
        picture = f"[{', '.join([long_vector] * 12)}].reshape([32, 32, 3])"
        programs = {
            "scalars": "x = (index * 3 + 1) % 1000 | y = (x + index).f64 / 7.0 | select y",
            "floats": f"x = ({picture}.f32 * 0.25 + 1.0).sqrt() | select x",
            "powers": f"x = {long_vector}.f64.pow(0.3) | select x",
            "integers": f"x = {long_vector} % 7 + {long_vector} // 3 | select x",
            "sums": f"x = {picture}.f32 | m = x.mean() + x.max() | select m",
            "pictures": f"x = ({picture} % 256).u8.resize(64, 64).random_flip().to_unit().to_chw() | select x",
            "crops": f"x = ({picture} % 256).u8.random_crop(16, 16).normalize(mean=[0.4, 0.4, 0.4], std=[0.2, 0.2, 0.2])"
                     " | select x",
            "texts": 'x = "sample {index} of many".upper() | y = x.hash() % 10 | z = x.len() | select y, z',
            "patterns": r'x = "sample {index} of 3".regex_replace(r"(\w+) (\d+)", r"$2-$1") | select x',
            "times": 't = (index % 30000 * 86400000000000).format_time().parse_time() | y = t.year() + t.weekday() | select y',
            "draws": "x = uniform(0, 1) + normal(0, 2) | y = randint(1, 7) | select x, y",
            "filters": "x = index * index % 97 | filter x < 10 | filter x.f64.exp() > 3.0 | y = x.f64.pow(3) | select y",
        }
        with tempfile.TemporaryDirectory() as folder:
            env = {"ZEPHON_CACHE_DIR": os.path.join(folder, "cache"), "ZEPHON_MEASURED": "on"}
            errors = {"assumed": {}, "calibrated": {}, "and measured by a run": {}}

            def look(what, name, path):
                plan = json.loads(run([self.zephonc, "plan", path, "--json", "--threads", "1"], env)[0])
                compute = [i for i, node in enumerate(plan["nodes"]) if node["kind"] == "compute"]
                measured = []
                for _ in range(3):
                    operators = json.loads(run([self.zephonc, "run", path, "--json", "--no-measured",
                                                "--progress", "never", "--plan", plan_file(path, plan)], env)[0])["operators"]
                    measured.append(sum(operators[i]["cpu_seconds"] for i in compute) / operators[0]["samples"] * 1e9)
                errors[what][name] = plan["ns_as_planned"] / min(measured)

            def plan_file(path, plan):
                with open(path + ".json", "w", encoding="utf-8") as file:
                    json.dump(plan, file)
                return path + ".json"

            paths = {}
            for name, steps in programs.items():
                paths[name] = os.path.join(folder, name + ".zpl")
                with open(paths[name], "w", encoding="utf-8") as file:
                    file.write(f"range({20000 if '32, 32' in steps else 200000}) | {steps}\n")
            for name, path in paths.items():
                look("assumed", name, path)
            run([self.zephonc, "calibrate"], env)
            for name, path in paths.items():
                look("calibrated", name, path)
            for name, path in paths.items():
                run([self.zephonc, "run", path, "--threads", "1", "--progress", "never"], env)
                look("and measured by a run", name, path)
        for name in programs:
            print(f"14 {name:<12} predicted over measured: " +
                  ", ".join(f"{what} {of[name]:.2f}" for what, of in errors.items()))
        for what, of in errors.items():
            report(14, f"predicted against measured, a row, {what}", [max(e, 1 / e) for e in of.values()])

    def section9(self):
        """At a place in the middle; then while a step is being typed there, each letter followed at once by questions."""
        lines = long_program(2000).split("\n")
        at = max(i for i in range(len(lines) // 2) if lines[i].startswith("  | f = "))
        editor, document = Editor(self.zephonc), {"uri": "file:///long.zpl"}
        editor.ask("initialize", {"capabilities": {}})
        editor.send("textDocument/didOpen", {"textDocument": {**document, "languageId": "zpl", "version": 0,
                                                              "text": "\n".join(lines)}})
        editor.published(0)
        walls, typed, version = {}, "", 0

        def note(what, seconds):
            walls.setdefault(what, []).append(seconds)

        place = lambda column, line=at: {"textDocument": document, "position": {"line": line, "character": column}}
        for _ in range(20):
            note("hover, quiet", editor.ask("textDocument/hover", place(lines[at].index("scale") + 2)))
            note("completion, quiet", editor.ask("textDocument/completion", place(lines[at].index("scale") + 2)))
        for letter in "\n  | new = scale1(a) + clamp(b, 0, 1)":
            begin = {"line": at, "character": len(lines[at])} if "\n" not in typed else \
                {"line": at + 1, "character": len(typed) - 1}
            typed, version = typed + letter, version + 1
            start = time.perf_counter()
            editor.send("textDocument/didChange", {"textDocument": {**document, "version": version}, "contentChanges": [
                {"range": {"start": begin, "end": begin}, "text": letter}]})
            if "=" in typed:
                note("completion, while typing", editor.ask("textDocument/completion", place(len(typed) - 1, at + 1)))
            note("hover, while typing", editor.ask("textDocument/hover", place(lines[at].index("scale") + 2)))
            editor.published(version)
            note("diagnostics after a letter", time.perf_counter() - start)
        editor.ask("shutdown", None)
        editor.send("exit", None)
        editor.server.wait()
        for what, values in walls.items():
            floor = None if what.startswith("diagnostics") else 0.03
            report(9, f"lsp on 2,000 lines: {what}", values, floor, None, "s")
            if floor is not None:
                report(9, f"lsp on 2,000 lines: {what}, slowest", [max(values)], floor, None, "s")


class Editor:
    """As much of a client of the Language Server Protocol as is needed to wait for answers."""

    def __init__(self, zephonc):
        self.server = subprocess.Popen([zephonc, "lsp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.ids = 0
        self.diagnosed = -1  # the version of the document whose diagnostics came last

    def send(self, method, params, **more):
        body = json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **more}).encode()
        self.server.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.server.stdin.flush()

    def wait(self, wanted):
        while True:
            length = int(self.server.stdout.readline().split(b":")[1])
            self.server.stdout.readline()
            message = json.loads(self.server.stdout.read(length))
            # They may come before the answer to an earlier question.
            self.diagnosed = max(self.diagnosed, message.get("params", {}).get("version", -1))
            if wanted(message):
                return message

    def ask(self, method, params):
        """-> seconds"""
        self.ids += 1
        start = time.perf_counter()
        self.send(method, params, id=self.ids)
        answer = self.wait(lambda message: message.get("id") == self.ids)
        seconds = time.perf_counter() - start
        if "error" in answer or method != "shutdown" and not answer["result"]:
            sys.exit(f"{method}: {answer}")
        return seconds

    def published(self, version):
        if self.diagnosed < version:
            self.wait(lambda message: self.diagnosed >= version)


def beside(corpus):
    """Where hard links to the photographs can be made."""
    return os.path.dirname(corpus)


def sides(path):
    """Height and width, from a JPEG file's frame header."""
    with open(path, "rb") as file:
        data = file.read()
    at = 2
    while at + 9 < len(data):
        marker, length = data[at + 1], int.from_bytes(data[at + 2:at + 4], "big")
        if marker in range(0xC0, 0xC3):
            return int.from_bytes(data[at + 5:at + 7], "big"), int.from_bytes(data[at + 7:at + 9], "big")
        at += 2 + length
    return 0, 0


def link_photos(corpus, root, count, least):
    photos = [p for p in sorted(glob.glob(os.path.join(glob.escape(corpus), "*", "*.jpg"))) if min(sides(p)) >= least]
    step = max(1, len(photos) // count)
    for photo in photos[::step][:count]:
        folder = os.path.join(root, os.path.basename(os.path.dirname(photo)))
        os.makedirs(folder, exist_ok=True)
        os.link(photo, os.path.join(folder, os.path.basename(photo)))


def write_table(path, rows):
    numbers = random.Random(1)
    with open(path, "w", encoding="utf-8") as file:
        file.write("a,b,c,d,e,f,g,h,name,kind\n")
        for i in range(rows):
            file.write(",".join(f"{numbers.random():.6f}" for _ in range(8)) + f",row {i},{i * 7 % 10}\n")


def write_signal(path, values):
    numbers = random.Random(2)
    cycle = array.array("h", (int(numbers.gauss(0, 200)) for _ in range(100_003)))
    with open(path, "wb") as file:
        for _ in range(values // len(cycle)):
            cycle.tofile(file)


def bytes_delivered(bench, path, root):
    """For each sample, of what is delivered."""
    report = bench.zephon(f"{path}:hand", f"root={root}", "--take", "1")[0]
    last = [o for o in report["operators"] if o["bytes_out"]][-1]
    return last["bytes_out"] // last["samples"]


def logical_rules():
    """Those that do not belong to the physical plan."""
    names, name = [], ""
    with open(os.path.join(ROOT, "optimizer", "rules", "RULES.md"), encoding="utf-8") as file:
        for line in file:
            name = line[3:].strip() if line.startswith("## ") else name
            if line.startswith("- phase: ") and not line.startswith("- phase: physical"):
                names.append(name)
    return ",".join(names)


def long_program(lines):
    """A file of so many lines: functions, constants, and streams of some forty steps that are mixed."""
    text = ["zpl 1", ""]
    for i in range(lines // 20):
        text.append(f"fn scale{i}(x, by={i + 1}) = (f64(x) * by + {i}.5).sqrt()  # number {i}")
    streams = 0
    while len(text) < lines - 12:
        text.append(f"stream part{streams} = range({streams + 100})")
        for step in range(38):
            field = "abcdefgh"[step % 8]
            source = "index" if step <= 8 else field  # step 0 filters
            text.append(f"  | {field} = scale{(streams * 7 + step) % (lines // 20)}(f64({source})).clamp(0, {step + 1})"
                        if step % 9 else f"  | filter index % {step + 3} != 0  # step {step}")
        streams += 1
    text.append("mix(" + ", ".join(f"part{i}={i + 1}" for i in range(streams)) + ")")
    text += ["  | select index, b, c", "  | batch(8)"]
    return "\n".join(text) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--corpus", default="examples/data/photos")
    parser.add_argument("--highres")
    parser.add_argument("--without-counters")
    parser.add_argument("--only", default="2,3,4,5,6,7,8,9,10,11,12,13,14")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--photos", type=int, default=800, help="of sections 11 and 12")
    parser.add_argument("--cases", default="", help="of sections 11 and 12: those whose names contain this")
    parser.add_argument("--json")
    options = parser.parse_args()
    options.build = os.path.abspath(options.build)
    bench = Bench(options)
    print(f"corpus {options.corpus}: {bench.files} files; {options.rounds} rounds; {os.cpu_count()} processors")
    for section in options.only.split(","):
        getattr(bench, f"section{section}")()
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)
    return 1 if any(r["verdict"] == "FLOOR MISSED" for r in results) else 0


if __name__ == "__main__":
    sys.exit(main())
