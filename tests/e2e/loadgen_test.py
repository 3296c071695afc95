"""twp-loadgen against twp-origin, against Python's http.server and against servers that are wrong on purpose."""
import csv
import http.server
import json
import os
import signal
import socket
import subprocess
import tempfile
import threading
import unittest

import tools
from tools import Origin, RawServer, loadgen

COLUMNS = ("run_id,commit,utc,host,cores,arm,mode,client,origin,product,version,repeat,concurrency,connections,warmup_s,duration_s,"
           "requests,errors,error_rate,rps,goodput_mib_s,p50_us,p90_us,p99_us,p999_us,max_us,slo_p99_us,slo_pass,proxy_rss_peak_bytes,"
           "proxy_cpu_avg_pct,proxy_cpu_us_per_req,origin_cpu_us_per_req,loadgen_cpu_us_per_req,limit_ratio").split(",")
SHORT = ("-d", "600ms", "--warmup", "100ms")
LONG = ("-d", "3s", "--warmup", "100ms")


def measured(*args):
    """(exit status, the JSON of run)"""
    done = loadgen("run", *args, "--json", "-")
    if not done.stdout:
        raise AssertionError(f"{args}: {done.returncode} {done.stderr}")
    return done.returncode, json.loads(done.stdout)


class Against(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.ca = os.path.join(cls.scratch.name, "ca")
        cls.origin = Origin("--ca", cls.ca, listen=("http://127.0.0.1:0", "https://127.0.0.1:0"))
        cls.addClassCleanup(cls.origin.__exit__)
        cls.url, cls.tls_url = cls.origin.urls

    def check(self, *args, times=SHORT):
        """The workload runs without one error; returns the JSON."""
        status, out = measured(*args, *times)
        self.assertEqual((status, out["errors"], out["detail"]["first_error"]), (0, 0, ""), out)
        self.assertGreater(out["requests"], 0)
        return out

    def test_get(self):
        out = self.check(self.url + "/", "-c", "4", "--expect-length", "56", "--verify-body")
        self.assertEqual(list(out)[:-1], COLUMNS)
        self.assertEqual((out["concurrency"], out["connections"], out["client"], out["cores"]), (4, 4, "h1c", os.cpu_count()))
        self.assertGreater(out["duration_s"], 0.5)  # a busy machine may make it longer
        self.assertAlmostEqual(out["goodput_mib_s"], out["rps"] * 56 / 2**20, delta=out["goodput_mib_s"] * 0.05 + 0.01)
        self.assertLessEqual(out["p50_us"], out["p99_us"])
        self.assertLessEqual(out["p99_us"], out["max_us"])
        self.assertGreater(out["loadgen_cpu_us_per_req"], 0)

    def test_tls(self):
        out = self.check(self.tls_url + "/", "-c", "2", "--ca", self.ca + "/ca.pem", "--http", "h1")
        self.assertEqual(out["client"], "h1")
        self.check(self.tls_url + "/", "--insecure")
        done = loadgen("run", self.tls_url + "/", *SHORT)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertRegex(done.stderr, r"^twp-loadgen: TLS with .* certificate .*; trust its CA with --ca FILE, or use --insecure$")

    def http2(self):
        """(arguments, client wire)"""
        yield ("h2c" + self.url[4:],), "h2c"
        yield (self.url, "--http", "h2"), "h2c"
        yield (self.tls_url, "--http", "h2", "--ca", self.ca + "/ca.pem"), "h2"
        yield (self.tls_url, "--ca", self.ca + "/ca.pem"), "h2"  # what ALPN chooses

    def test_http2(self):
        for args, wire in self.http2():
            with self.subTest(args):
                out = self.check(*args, "-c", "40", "--expect-length", "56", "--verify-body")
                self.assertEqual((out["client"], out["arm"], out["slo_p99_us"]), (wire, wire, 100_000))
                self.assertEqual(out["connections"], min(40, max(16, 4 * os.cpu_count())))
        out = self.check("h2c" + self.url[4:], "-c", "40", "-m", "20")
        self.assertEqual((out["concurrency"], out["connections"]), (40, 2))

    def test_workloads_over_http2(self):
        for (url, *args), _ in list(self.http2())[::3]:
            with self.subTest(url, args=args):
                self.check(url + "/", *args, "-X", "POST", "--body-size", "100k", "-c", "20")
                out = self.check(url + "/", *args, "--new-connection", "-c", "4")
                self.assertEqual(out["connections"], 4)
                self.assertGreaterEqual(out["detail"]["connect"]["count"], out["requests"])
                out = self.check(url + "/early", *args, "--workload", "early", "--body-size", "8MiB")
                self.assertGreater(out["detail"]["early_responses"], 0)
                self.check(url + "/echo", *args, "--workload", "duplex", "--body-size", "1MiB", "-c", "4", "-m", "2")
                for size in ("1", "65536"):
                    self.check(url + "/ws", *args, "--workload", "ws", "--body-size", size, "-c", "20")
                _, out = measured(url + "/", *args, "-c", "16", "--rate", "500", "-d", "1s", "--warmup", "100ms")
                self.assertAlmostEqual(out["requests"] + out["detail"]["unfinished"], 500, delta=1)

    def test_slow_reader_over_http2_is_slow(self):
        _, out = measured("h2c" + self.url[4:] + "/bytes/30000000", "--read-rate", "40000000", "-d", "6s", "--warmup", "0s")
        self.assertEqual(out["errors"], 0)
        self.assertGreater(out["requests"], 0)
        self.assertGreater(out["p50_us"], 500_000)

    def test_grpc(self):
        for (url, *args), wire in list(self.http2())[::2]:
            with self.subTest(url, args=args):
                for size in ("0", "64", "1MiB"):
                    out = self.check(url, *args, "--workload", "grpc", "--body-size", size, "-c", "4", times=SHORT)
                    self.assertEqual(out["client"], wire)
        _, out = measured(self.url + "/twp.Echo/Nothing", "--workload", "grpc", *SHORT)
        self.assertEqual(out["detail"]["errors_by_kind"]["grpc"], out["requests"])
        self.assertEqual(out["detail"]["first_error"], "grpc-status 12: no such method")
        _, out = measured(self.url + "/status/503", "--workload", "grpc", *SHORT)
        self.assertEqual(out["detail"]["errors_by_kind"]["status"], out["requests"])

    def test_resets_and_goaways_over_http2(self):
        _, out = measured("h2c" + self.url[4:] + "/reset", *SHORT, "-c", "8", "-m", "4")
        self.assertGreater(out["requests"], 0)
        self.assertEqual(out["detail"]["errors_by_kind"]["transport"], out["requests"])
        self.assertEqual(out["detail"]["connect"]["count"], 2)  # a stream that is reset takes no other with it
        self.assertIn("response cut short", out["detail"]["first_error"])
        self.check("h2c" + self.url[4:] + "/close", "-c", "8", "-m", "4")

    def test_http2_that_is_not_there(self):
        with RawServer(lambda n: b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") as server:
            done = loadgen("run", f"h2c://127.0.0.1:{server.port}/", *SHORT, "--timeout", "2s")
        self.assertNotEqual((done.returncode, done.stderr), (0, ""), done)

    def test_post(self):
        self.check(self.url + "/", "-X", "POST", "--body-size", "100k", "-c", "2")

    def test_body_file_comes_back(self):
        path = os.path.join(self.scratch.name, "body")
        with open(path, "wb") as f:
            f.write(os.urandom(300_001))
        self.check(self.url + "/echo", "-X", "PUT", "--body", path, "--verify-body", path, "--expect-length", "300001")

    def test_head_and_empty(self):
        self.check(self.url + "/bytes/1000", "-X", "HEAD")
        self.check(self.url + "/status/204")

    def test_new_connection(self):
        out = self.check(self.url + "/", "--new-connection", "-c", "4")
        self.assertGreaterEqual(out["detail"]["connect"]["count"], out["requests"])
        self.check(self.tls_url + "/", "--new-connection", "--ca", self.ca + "/ca.pem")
        self.check(self.tls_url + "/", "--new-connection", "--no-resume", "--ca", self.ca + "/ca.pem")

    def test_early(self):
        out = self.check(self.url + "/early", "--workload", "early", "--body-size", "8MiB", times=LONG)
        self.assertGreater(out["detail"]["early_responses"], 0)

    def test_duplex(self):
        out = self.check(self.url + "/echo", "--workload", "duplex", "--body-size", "3MiB", "-c", "2", times=LONG)
        self.assertGreater(out["goodput_mib_s"], 0)

    def test_websocket(self):
        for size in ("1", "64", "65536", "1MiB"):
            self.check(self.url + "/ws", "--workload", "ws", "--body-size", size, "-c", "3", times=LONG if size == "1MiB" else SHORT)
        self.check(self.tls_url + "/ws", "--workload", "ws", "--ca", self.ca + "/ca.pem")
        done = loadgen("run", self.url + "/", "--workload", "ws", *SHORT)
        self.assertEqual(done.returncode, 1)
        self.assertIn("the WebSocket handshake was answered with status 404", done.stderr)

    def test_websocket_says_what_is_wrong(self):
        good = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        for answer, text in ((good + b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n", "Sec-WebSocket-Accept that does not belong to our key"),
                             (good + b"\r\n", "Sec-WebSocket-Accept that does not belong to our key"),
                             (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "a page (status 200) instead of the WebSocket protocol"),
                             (b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n", "status 403")):
            with RawServer(lambda n, a=answer: a) as server:
                done = loadgen("run", server.url, "--workload", "ws", *SHORT)
            self.assertEqual(done.returncode, 1)
            self.assertIn(text, done.stderr)

    def test_slow_reader_is_slow(self):
        # 40 MB a second over a body much larger than what sockets and windows hold.
        _, out = measured(self.url + "/bytes/30000000", "--read-rate", "40000000", "-d", "6s", "--warmup", "0s")
        self.assertEqual(out["errors"], 0)
        self.assertGreater(out["requests"], 0)
        self.assertGreater(out["p50_us"], 500_000)

    def test_open_loop_keeps_its_rate(self):
        _, out = measured(self.url + "/", "-c", "16", "--rate", "500", "-d", "1s", "--warmup", "100ms")
        self.assertAlmostEqual(out["requests"] + out["detail"]["unfinished"], 500, delta=1)
        self.assertEqual(out["detail"]["latency"]["count"], out["requests"] + out["detail"]["unfinished"])
        self.assertIn("service", out["detail"])

    def test_open_loop_does_not_omit_what_waited(self):
        # One connection, 100 ms each, 50 a second asked for: the queue grows, and the corrected latency with it.
        _, out = measured(self.url + "/delay/100", "-c", "1", "--rate", "50", "-d", "1s", "--warmup", "0s")
        self.assertGreater(out["p50_us"], out["detail"]["service"]["p50_us"])
        self.assertGreater(out["p50_us"], 300_000)
        self.assertGreater(out["detail"]["unfinished"], 10)
        self.assertAlmostEqual(out["detail"]["latency"]["count"], 50, delta=1)

    def test_open_loop_starts_nothing_before_it_is_due(self):
        # Slow enough that the origin is not what is waited for: the generator sleeps between two requests.
        for concurrency in ("1", "16"):
            _, out = measured(self.url + "/", "-c", concurrency, "--rate", "1000", *SHORT)
            corrected, raw = out["detail"]["latency"], out["detail"]["service"]
            self.assertGreater(raw["count"], 10)
            for key in ("mean_us", "p50_us", "p90_us", "max_us"):
                # What had no answer at the end counts only in the corrected ones, and may have waited for nearly nothing.
                self.assertGreaterEqual(corrected[key] * 1.05 + 2, raw[key], (key, corrected, raw))

    def test_timeouts_are_errors(self):
        status, out = measured(self.url + "/delay/60000", "-c", "2", "--timeout", "100ms", "-d", "1s", "--warmup", "0s")
        self.assertEqual(status, 1)  # not one right answer
        self.assertGreaterEqual(out["detail"]["errors_by_kind"]["timeout"], 2)
        self.assertEqual(out["requests"], out["errors"])
        self.assertEqual(out["rps"], 0)

    def test_statuses(self):
        _, out = measured(self.url + "/status/503", *SHORT)
        self.assertEqual(out["errors"], out["requests"])
        self.assertEqual(out["detail"]["errors_by_kind"]["status"], out["errors"])
        self.assertEqual(out["detail"]["first_error"], "status 503")
        self.check(self.url + "/status/503", "--expect-status", "5xx")

    def test_resets_are_errors(self):
        _, out = measured(self.url + "/reset", *SHORT)
        self.assertGreater(out["requests"], 0)
        self.assertEqual(out["detail"]["errors_by_kind"]["transport"], out["requests"])

    def test_connections_that_close_are_opened_again(self):
        out = self.check(self.url + "/close", "-c", "2")
        self.assertGreater(out["detail"]["connect"]["count"], out["requests"] * 0.9)

    def test_headers_and_host(self):
        with RawServer(lambda n: b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") as server:
            _, out = measured("http://a.test/x?y", "--connect-to", f"127.0.0.1:{server.port}", "-H", "X-One: 1", "-H", "Accept: a, b", *SHORT)
            self.assertEqual(out["errors"], 0)
            lines = server.heads[0].decode().split("\r\n")
        self.assertEqual(lines[0], "GET /x?y HTTP/1.1")
        self.assertIn("Host: a.test", lines)
        self.assertIn("X-One: 1", lines)
        self.assertIn("Accept: a, b", lines)

    def test_threads(self):
        out = self.check(self.url + "/", "-c", "5", "--threads", "2")
        self.assertEqual(out["detail"]["threads"], 2)

    def test_watch(self):
        status, out = measured(self.url + "/", "--watch", f"proxy={os.getpid()}", "--watch", f"origin={self.origin.process.pid}",
                               "--limit-us", "100", *LONG)
        self.assertEqual(status, 0)
        self.assertGreater(out["origin_cpu_us_per_req"], 0)
        self.assertGreater(out["proxy_rss_peak_bytes"], 1_000_000)
        self.assertAlmostEqual(out["limit_ratio"], out["proxy_cpu_us_per_req"] / 100, delta=0.002)
        # This process's descendants count too, the origin among them.
        self.assertGreaterEqual(out["proxy_cpu_us_per_req"], out["origin_cpu_us_per_req"] * 0.8)
        self.assertEqual(loadgen("run", self.url, "--watch", "x=999999999").returncode, 2)

    def test_csv(self):
        path = os.path.join(self.scratch.name, "out.csv")
        for repeat in (1, 2):
            done = loadgen("ramp", self.url + "/", "--concurrency", "1,2", *SHORT, "--csv", path, "--arm", "a,b", "--repeat", repeat,
                           "--product", "twp", "--product-version", "1", "--mode", "m", "--origin", "h1", "--run-id", "r")
            self.assertEqual(done.returncode, 0, done.stderr)
        with open(path, encoding="utf-8") as f:
            self.assertEqual(f.readline().rstrip("\n").split(","), COLUMNS)
            f.seek(0)
            rows = list(csv.DictReader(f))
        self.assertEqual([(r["concurrency"], r["repeat"], r["arm"], r["product"], r["run_id"], r["origin"]) for r in rows],
                         [(c, r, "a,b", "twp", "r", "h1") for r in "12" for c in "12"])
        self.assertEqual({r["proxy_cpu_us_per_req"] for r in rows}, {""})

    def test_ramp(self):
        done = loadgen("ramp", self.url + "/", "-c", "1,2,4", *SHORT, "--json", "-")
        out = json.loads(done.stdout)
        self.assertEqual([s["concurrency"] for s in out["steps"]], [1, 2, 4])
        self.assertIn(out["sustain_concurrency"], (None, 1, 2, 4))
        self.assertEqual(out["peak_rps"], max(s["rps"] for s in out["steps"]))
        self.assertIn("sustain:", done.stderr)

    def test_table(self):
        done = loadgen("run", self.url + "/", "-c", "2", *SHORT)
        self.assertEqual(done.returncode, 0)
        self.assertIn("req/s", done.stdout)
        self.assertNotIn("\r", done.stderr)  # no progress line without a terminal
        self.assertNotIn("\x1b", done.stdout + done.stderr)

    def test_slo(self):
        slow = (self.url + "/delay/20", "-c", "2", *SHORT)
        self.assertEqual(loadgen("run", *slow, "--slo-p99", "5ms").returncode, 3)
        self.assertEqual(loadgen("run", *slow, "--slo-p99", "30s").returncode, 0)
        self.assertEqual(loadgen("run", self.url + "/status/500", *SHORT, "--slo-errors", "50%").returncode, 3)
        self.assertEqual(loadgen("run", self.url + "/status/500", *SHORT).returncode, 1)  # no SLO was given, and nothing went right
        self.assertEqual(loadgen("ramp", self.url + "/status/500", "-c", "1,2", *SHORT).returncode, 1)
        self.assertEqual(loadgen("ramp", self.url + "/delay/20", "-c", "1,2", *SHORT, "--slo-p99", "5ms").returncode, 3)

    def interrupt_when(self, args, condition):
        process = subprocess.Popen([tools.program("twp-loadgen"), *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        condition()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=tools.DEADLINE)
        return process.returncode, out, err

    def test_interrupt_prints_what_was_measured(self):
        served = threading.Event()

        def answer(n):
            if n >= 200:
                served.set()
            return b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

        with RawServer(answer) as server:
            status, out, err = self.interrupt_when(["run", server.url, "-d", "1h", "--warmup", "0s"], lambda: served.wait(tools.DEADLINE))
        self.assertEqual(status, 0, err)
        self.assertIn("interrupted", out)
        self.assertRegex(out, r"requests in \d+\.\d+ s")


class WrongServers(unittest.TestCase):
    def errors(self, answer, *args, **kwargs):
        with RawServer(answer, **kwargs) as server:
            _, out = measured(server.url, *SHORT, *args)
        self.assertGreater(out["requests"], 0)
        return out

    def test_wrong_body(self):
        def answer(n):
            return b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n" + (b"no" if n % 2 == 0 else b"ok")
        out = self.errors(answer, "--verify-body")
        self.assertAlmostEqual(out["detail"]["errors_by_kind"]["body"], out["requests"] / 2, delta=1)
        self.assertEqual(self.errors(answer)["errors"], 0)

    def test_wrong_length(self):
        out = self.errors(lambda n: b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "--expect-length", "3")
        self.assertEqual(out["detail"]["errors_by_kind"]["length"], out["requests"])

    def test_octets_behind_the_response(self):
        out = self.errors(lambda n: b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokay")
        self.assertGreater(out["detail"]["errors_by_kind"]["stray"], 0)
        self.assertAlmostEqual(out["errors"], out["requests"], delta=1)  # one may end in the window and be found out behind it
        self.assertEqual(out["detail"]["first_error"], "octets after the end of a response")

    def test_cut_body(self):
        out = self.errors(lambda n: b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nok", close=True)
        self.assertEqual(out["errors"], out["requests"])

    def test_no_http(self):
        out = self.errors(lambda n: b"hello\r\n\r\n")
        self.assertEqual(out["errors"], out["requests"])

    def test_sometimes_wrong_status(self):
        def answer(n):
            return b"HTTP/1.1 %d X\r\nContent-Length: 2\r\n\r\nok" % (500 if n % 4 == 0 else 200)
        out = self.errors(answer)
        self.assertAlmostEqual(out["error_rate"], 0.25, delta=1 / out["requests"] + 0.001)

    def test_refused_at_start(self):
        # Bound and not listening: the port refuses, and nobody else can have it meanwhile.
        with socket.socket() as held:
            held.bind(("127.0.0.1", 0))
            where = "127.0.0.1:%d" % held.getsockname()[1]
            done = loadgen("run", f"http://{where}/")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(done.stderr, f"twp-loadgen: cannot connect to {where}: Connection refused\n")

    def test_a_stopped_server_takes_nobody(self):
        # Of the tests' own server: whoever waits in accept(2) is woken.
        with RawServer(lambda n: None) as server:
            with socket.create_connection(("127.0.0.1", server.port), tools.DEADLINE):
                pass
        self.assertRaises(ConnectionRefusedError, socket.create_connection, ("127.0.0.1", server.port), tools.DEADLINE)

    def test_python_server(self):
        class Quiet(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Length", "5")
                self.end_headers()
                self.wfile.write(b"hello")

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            for extra in ((), ("--new-connection",)):
                _, out = measured(f"http://127.0.0.1:{server.server_port}/", "-c", "4", "--expect-length", "5", *SHORT, *extra)
                self.assertGreater(out["requests"], 0)
                self.assertEqual(out["errors"], 0, out)
        finally:
            server.shutdown()
            thread.join()
            server.server_close()


class Usage(unittest.TestCase):
    def test_bad_usage_is_one_line_and_2(self):
        for args in ([], ["run"], ["run", "nonsense"], ["run", "http://127.0.0.1:1/", "-d", "x"], ["run", "http://127.0.0.1:1/", "-c", "0"],
                     ["run", "h3://127.0.0.1:1/"], ["run", "http://127.0.0.1:1/", "--http", "h9"], ["run", "http://127.0.0.1:1/", "-m", "2"], ["run", "h2c://127.0.0.1:1/", "--http", "h1"],
                     ["run", "http://127.0.0.1:1/", "--http", "h1", "--workload", "grpc"],
                     ["ramp", "http://127.0.0.1:1/", "-c", "8,"], ["run", "http://127.0.0.1:1/", "--rate", "5", "--new-connection"],
                     ["run", "http://127.0.0.1:1/", "--slo-errors", "x"], ["run", "http://127.0.0.1:1/", "--watch", "x"],
                     ["run", "http://127.0.0.1:1/", "-H", "nocolon"], ["run", "http://127.0.0.1:1/", "--body", "/nonexistent"]):
            done = loadgen(*args)
            self.assertEqual(done.returncode, 2, (args, done.stderr))
            self.assertEqual(done.stderr.count("\n"), 1, (args, done.stderr))
            self.assertEqual(done.stdout, "", args)

    def test_help_and_version(self):
        self.assertIn("Examples:", loadgen("--help").stdout)
        self.assertIn("--slo-p99", loadgen("ramp", "--help").stdout)
        self.assertTrue(loadgen("--version").stdout.startswith("twp-loadgen "))


if __name__ == "__main__":
    unittest.main()
