#!/usr/bin/env python3
"""Measures zephonc against programs that use nothing of it, in pairs, one after the other, and prints ratios.

usage: run.py [--build build/release] [--corpus examples/data/photos] [--highres DIR] [--only 2,3,4,5,6,7,8,9,10]
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
"""
import argparse
import glob
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), ".."))
results = []


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
    parser.add_argument("--only", default="2,3,4,5,6,7,8,9,10")
    parser.add_argument("--rounds", type=int, default=7)
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
