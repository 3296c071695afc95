"""The scripts that measure: order, arithmetic, gates, checks, and that they leave no process behind."""
import contextlib
import csv
import importlib.machinery
import importlib.util
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

REPO = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "scripts"))
from rps import arms, procs, strace, table  # noqa: E402


def script(path):
    """A script without an ending, as a module."""
    loader = importlib.machinery.SourceFileLoader(path.replace("-", "_").replace("/", "_"), str(REPO / "scripts" / path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def row(product, arm="h1c->h1c", repeat=1, **values):
    client, _, origin = arm.partition("->")
    made = dict.fromkeys(table.COLUMNS, "")
    made.update(product=product, arm=arm, client=client, origin=origin or client, repeat=repeat, concurrency=64,
                error_rate=0, errors=0, p99_us=900, slo_p99_us=50000)
    made.update(values)
    return made


def good_file():
    """Numbers that meet every target exactly."""
    rows = [row(table.DIRECT, "direct h1c", client="h1c", origin="h1c", repeat=r, rps=100000, origin_cpu_us_per_req=o,
                loadgen_cpu_us_per_req=g) for r, o, g in ((1, 3.0, 5.0), (2, 5.0, 3.0))]
    for repeat in (1, 2, 3):
        rows.append(row("twp", repeat=repeat, rps=90000, proxy_cpu_us_per_req=8.0, proxy_rss_peak_bytes=10 << 20))
        rows.append(row("nginx", repeat=repeat, rps=80000, proxy_cpu_us_per_req=9.5, proxy_rss_peak_bytes=10 << 20))
        rows.append(row("haproxy", repeat=repeat, rps=70000, proxy_cpu_us_per_req=10.0, proxy_rss_peak_bytes=10 << 20))
    table.fill_limit_ratios(rows)
    return rows


class Report(unittest.TestCase):
    def test_a_file_that_is_missing_is_said_before_anything_is_printed(self):
        for path in ("/nonexistent.csv", str(REPO / "README.md")):
            done = subprocess.run([sys.executable, REPO / "scripts/report", path], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertTrue(done.stderr.startswith(f"report: {path}: "), done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1)


class Arithmetic(unittest.TestCase):
    def test_products_alternate(self):
        self.assertEqual([arms.order("ABC", r) for r in (1, 2, 3)], [list("ABC"), list("CBA"), list("ABC")])

    def test_limit_ratio_is_proxy_over_both_legs(self):
        mine = [r for r in good_file() if r["product"] == "twp"]
        self.assertEqual(mine[0]["limit_ratio"], "1.0000")  # 8 / (median of 3 and 5 + median of 5 and 3)

    def test_limit_ratio_takes_each_leg_from_its_own_wire(self):
        rows = [row(table.DIRECT, "direct h1c", client="h1c", origin="h1c", origin_cpu_us_per_req=2, loadgen_cpu_us_per_req=3),
                row(table.DIRECT, "direct h1", client="h1", origin="h1", origin_cpu_us_per_req=20, loadgen_cpu_us_per_req=30),
                row("twp", "h1->h1c", proxy_cpu_us_per_req=46)]
        table.fill_limit_ratios(rows)
        self.assertEqual(rows[-1]["limit_ratio"], "2.0000")  # server leg h1 20 + client leg h1c 3

    def test_table_names_what_is_absent(self):
        rows = [row("nginx", rps=table.NOT_MEASURED, version=table.NOT_MEASURED),
                row("haproxy", rps=table.NOT_POSSIBLE, version="3.2")]
        text = table.markdown(rows)
        self.assertIn("| nginx | not measured | not measured |", text)
        self.assertIn("| haproxy | 3.2 | not possible |", text)

    def test_csv_round_trip_and_header(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.csv")
            table.write(path, good_file())
            with open(path, newline="", encoding="utf-8") as file:
                self.assertEqual(tuple(next(csv.reader(file))), table.COLUMNS)
            self.assertEqual([r["rps"] for r in table.read(path)], [str(r["rps"]) for r in good_file()])
            self.assertEqual(os.listdir(folder), ["x.csv"])

    def test_strace_summary(self):
        text = ("% time     seconds  usecs/call     calls    errors syscall\n"
                " 60.00    0.060000           2     30000           recvfrom\n"
                " 30.00    0.030000           3     10000        12 epoll_wait\n"
                "100.00    0.090000           2     40000        12 total\n")
        self.assertEqual(strace.counts(text), {"recvfrom": 30000, "epoll_wait": 10000})


class Gates(unittest.TestCase):
    def run_gates(self, rows):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.csv")
            table.write(path, rows)
            done = subprocess.run([str(REPO / "scripts" / "gates"), path], capture_output=True, text=True, check=False)
        return done.returncode, [line for line in done.stdout.splitlines() if line.startswith("FAIL")]

    def test_good_numbers_pass(self):
        self.assertEqual(self.run_gates(good_file()), (0, []))

    def test_each_target_fails_alone(self):
        for column, value, word in (("proxy_cpu_us_per_req", 8.05, "twp / haproxy"), ("rps", 79999, "a second, twp / nginx"),
                                    ("limit_ratio", 1.26, "limit_ratio"), ("proxy_rss_peak_bytes", 17 << 20, "RSS"),
                                    ("error_rate", 0.0011, "error rate"), ("p99_us", 50001, "p99")):
            rows = good_file()
            for r in rows:
                if r["product"] == "twp":
                    r[column] = value
            code, failures = self.run_gates(rows)
            self.assertEqual((code, len(failures)), (1, 1), (column, failures))
            self.assertIn(word, failures[0])

    def test_a_missing_peer_is_no_pass(self):
        code, failures = self.run_gates([r for r in good_file() if r["product"] != "nginx"])
        self.assertEqual((code, len(failures)), (1, 2))


class SourceChecks(unittest.TestCase):
    def test_long_function_is_found_and_may_be_excused(self):
        module = script("checks/function-length")
        body = "int f(int a) {\n" + "  a += '{';  // }\n" * 80 + "}\n"
        text = "namespace x {\n" + body + "struct S {\n  S() noexcept : a(1) { go(); }\n  int a;\n};\n}\n"
        self.assertEqual([(a, b) for a, b in module.functions(text)], [(2, 83), (85, 85)])
        lines = ("// Long: one table.\n" + body).splitlines()
        self.assertTrue(module.excused(lines, 2))
        self.assertFalse(module.excused(body.splitlines(), 1))

    def test_forbidden_includes_are_found(self):
        module = script("checks/dependency-direction")
        path = REPO / "libtwp" / "http" / "x.cc"
        text = '#include "base/slice.h"\n#include "net/transport.h"\n#include <openssl/ssl.h>\n#include <vector>\n'
        found = list(module.broken(path, "http", text))
        self.assertEqual(len(found), 2, found)
        self.assertIn("x.cc:2: http must not include net/transport.h", found[0])
        self.assertIn("x.cc:3: <openssl/ssl.h> stays in", found[1])

    def test_only_front_and_dialer_name_protocols(self):
        module = script("checks/dependency-direction")
        text = '#include "h1/h1_session.h"\n'
        self.assertEqual(list(module.broken(REPO / "libtwp/proxy/front.cc", "proxy", text)), [])
        self.assertEqual(len(list(module.broken(REPO / "libtwp/proxy/exchange.cc", "proxy", text))), 1)


def marked(mark):
    """Processes that carry `mark` in their environment."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            with contextlib.suppress(OSError):
                if mark in pathlib.Path(f"/proc/{entry}/environ").read_bytes():
                    found.append(int(entry))
    return found


class NothingLeft(unittest.TestCase):
    def test_stubborn_families_are_ended(self):
        env = dict(os.environ, TWP_TEST_MARK=f"stage-{os.getpid()}")
        stubborn = "trap '' TERM; (trap '' TERM; sleep 300 & wait) & sleep 300 & wait"
        with procs.Stage() as stage:
            proc = stage.start("stubborn", ["sh", "-c", stubborn], env=env)
            procs.wait_until(lambda: len(marked(f"stage-{os.getpid()}".encode())) >= 4, 10, "the family")
            self.assertGreaterEqual(len(procs.family(proc.pid)), 4)
            folder = stage.dir
        self.assertEqual(marked(f"stage-{os.getpid()}".encode()), [])
        self.assertFalse(os.path.exists(folder))

    def test_a_program_that_dies_before_it_is_ready_is_reported(self):
        with procs.Stage() as stage, self.assertRaisesRegex(procs.Trouble, "(?s)ended before it was ready.*no good"):
            stage.start("dead", ["sh", "-c", "echo no good; exit 3"], ready=True)

    def interrupted_run(self, sig):
        mark = f"rps-{os.getpid()}-{sig}"
        with tempfile.TemporaryDirectory() as folder:
            env = dict(os.environ, TWP_TEST_MARK=mark, TMPDIR=folder)
            argv = [str(REPO / "scripts" / "run-rps"), "--mode", "compare-spot", "--group", "h1c-h1c", "--products",
                    "twp", "--medium", "--repeats", "50", "--out", os.path.join(folder, "out")]
            with subprocess.Popen(argv, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as run:
                seen = ""
                deadline = time.monotonic() + 60
                while "repeat 1/50" not in seen and time.monotonic() < deadline:
                    line = run.stderr.readline()
                    if not line:
                        break
                    seen += line
                self.assertIn("repeat 1/50", seen)
                procs.wait_until(lambda: len(marked(mark.encode())) >= 4, 30, "generator, proxy and origin")
                run.send_signal(sig)
                self.assertEqual(run.wait(timeout=30), 128 + sig)
            self.assertEqual(marked(mark.encode()), [])
            self.assertEqual(os.listdir(folder), ["out"])

    def test_run_rps_cleans_up_after_sigint(self):
        self.interrupted_run(signal.SIGINT)

    def test_run_rps_cleans_up_after_sigterm(self):
        self.interrupted_run(signal.SIGTERM)


if __name__ == "__main__":
    unittest.main(verbosity=2)
