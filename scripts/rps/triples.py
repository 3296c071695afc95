"""Load generator -> proxy -> origin: starting the three, measuring one cell, and the calibration without a proxy."""
import dataclasses
import http.client
import json
import os
import re
import shutil
import ssl
import subprocess

from . import arms, procs
from .paths import Trouble, program
from .products import Tls


@dataclasses.dataclass(frozen=True)
class Pins:
    """CPUs of the three processes. The proxy has one of its own; the two others share the next."""
    proxy: frozenset
    origin: frozenset
    loadgen: frozenset

    @staticmethod
    def default():
        cpus = procs.allowed_cpus()
        rest = frozenset(cpus[1:2] or cpus)
        return Pins(frozenset(cpus[:1]), rest, rest)

    def text(self):
        return ", ".join(f"{f.name} on CPU {','.join(map(str, sorted(getattr(self, f.name))))}"
                         for f in dataclasses.fields(self))


def make_certificates(stage):
    """A CA and a P-256 leaf in the stage's folder."""
    certgen, folder = program("twp-certgen"), os.path.join(stage.dir, "ca")
    stage.run("twp-certgen", [certgen, "ca", "--out", folder], seconds=30)
    prefix = os.path.join(stage.dir, "server")
    stage.run("twp-certgen", [certgen, "leaf", "--ca", folder, "--host", "localhost", "127.0.0.1", "--out", prefix],
              seconds=30)
    return Tls(os.path.join(folder, "ca.pem"), f"{prefix}.pem", f"{prefix}-key.pem")


class Origin:
    """One twp-origin that serves every wire; `urls` has what a client of ours is told to connect to."""

    def __init__(self, stage, tls, cpus):
        argv = [program("twp-origin"), "--threads", "1"]
        for scheme in sorted(set(arms.SCHEME.values())):
            argv += ["--listen", f"{scheme}://127.0.0.1:0"]
        self.proc = stage.start("twp-origin", argv + ["--cert", tls.cert, "--key", tls.key], cpus, ready=True)
        self.urls = {}
        for wire in arms.WIRES:
            mine = [u for u in self.proc.urls() if u.startswith(arms.SCHEME[wire] + "://")]
            if not mine:
                raise Trouble(f"twp-origin's ready line has no {arms.SCHEME[wire]} URL: {self.proc.ready}")
            self.urls[wire] = arms.target(wire, mine[0])


def ask(url, tls, path="/", wire="h1c"):
    """One GET; (status, body). The certificate is verified. `wire` matters for HTTP/2, which is curl's to speak."""
    if wire in arms.HTTP2_WIRES:
        return _ask_with_curl(url, tls, path, wire)
    scheme, rest = url.split("://", 1)
    if scheme == "https":
        context = ssl.create_default_context(cafile=tls.ca)
        connection = http.client.HTTPSConnection(rest.rstrip("/"), timeout=10, context=context)
    else:
        connection = http.client.HTTPConnection(rest.rstrip("/"), timeout=10)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read()
    except (OSError, http.client.HTTPException) as e:
        raise Trouble(f"GET {url}{path} failed: {e!r}") from e
    finally:
        connection.close()


def _ask_with_curl(url, tls, path, wire):
    curl = shutil.which("curl")
    if not curl:
        raise Trouble("curl is not there: run scripts/setup --dev")
    url = f"{arms.SCHEME[wire]}://{url.split('://', 1)[1].rstrip('/')}{path}"
    argv = [curl, "-sS", "--max-time", "10", "--noproxy", "*", "--cacert", tls.ca, "-w", "%{stderr}%{http_code} %{http_version}",
            "--http2" if wire in arms.TLS_WIRES else "--http2-prior-knowledge", url]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=20, check=False)
    told = done.stderr.decode("utf-8", "replace").strip()
    found = re.fullmatch(r"([0-9]{3}) 2", told)
    if done.returncode != 0 or not found:
        raise Trouble(f"GET {url} over HTTP/2 failed: curl ended with {done.returncode} and said '{told}'")
    return int(found.group(1)), done.stdout


def check_cipher(url, name):
    """A client that offers what twp-loadgen offers, in its order, gets TLS 1.3 with AES-128-GCM."""
    openssl = shutil.which("openssl")
    if not openssl:
        return
    out = subprocess.run([openssl, "s_client", "-connect", url.split("://", 1)[1].rstrip("/"), "-ciphersuites",
                          "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"],
                         stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20, check=False).stdout
    if "TLSv1.3, Cipher is TLS_AES_128_GCM_SHA256" not in out:
        found = re.search(r"^New, (.*)$", out, re.M)
        raise Trouble(f"{name} speaks '{found.group(1) if found else 'no TLS'}', not TLSv1.3 with AES-128-GCM")


def check_path(running, origin, arm, tls):
    """The proxy answers what the origin answers, over TLS 1.3 with AES-128-GCM where there is TLS, and asks the origin in
    the version of HTTP that the arm says."""
    wanted, got = ask(origin.urls[arm.origin], tls, wire=arm.origin), ask(running.url, tls, wire=arm.client)
    if got != wanted or got[0] != 200:
        raise Trouble(f"{running.proc.name} on {arm.name} answers {got} instead of {wanted}")
    try:
        version = json.loads(ask(running.url, tls, "/headers", arm.client)[1])["version"]
    except (ValueError, KeyError) as e:
        raise Trouble(f"{running.proc.name} on {arm.name}: no usable answer from /headers: {e}") from e
    if version != ("2.0" if arm.origin in arms.HTTP2_WIRES else "1.1"):
        raise Trouble(f"{running.proc.name} on {arm.name} speaks HTTP/{version} to the origin")
    if arm.client in arms.TLS_WIRES:
        check_cipher(running.url, running.proc.name)


def load_arguments(url, wire, tls, load=arms.GET):
    """What twp-loadgen is told about where to and what."""
    argv = [arms.target(wire, url).rstrip("/") + load.path, *load.arguments]
    if wire in arms.TLS_WIRES:
        argv += ["--ca", tls.ca, "--http", arms.HTTP[wire]]
    return argv


def check_load(running, arm, tls, load, stage):
    """A moment of the load itself, without one error: not every product can carry everything on every pair."""
    out = os.path.join(stage.dir, "check.json")
    argv = [program("twp-loadgen"), "run", *load_arguments(running.url, arm.client, tls, load), "-c", "4", "--duration",
            "200ms", "--warmup", "0s", "--timeout", "5s", "--json", out]
    stage.run("twp-loadgen", argv, seconds=30)
    step = procs.read_json(out)
    os.unlink(out)
    if int(step["errors"]) or not int(step["requests"]):
        raise Trouble(f"{running.proc.name} on {arm.name} cannot carry '{load.name}': {step['requests']} requests, "
                      f"{step['errors']} errors, the first: {step['detail']['first_error']}")


def drive(stage, url, wire, tls, shape, watch, cpus, load=arms.GET):
    """One ramp of twp-loadgen; a dict for each step, its keys named as the columns of the CSV."""
    out = os.path.join(stage.dir, "ramp.json")
    argv = [program("twp-loadgen"), "ramp", *load_arguments(url, wire, tls, load), "--threads", "1",
            "--concurrency", ",".join(map(str, shape.concurrency)),
            "--warmup", f"{shape.warmup * 1000:.0f}ms", "--duration", f"{shape.duration * 1000:.0f}ms",
            "--slo-errors", f"{arms.SLO_ERRORS * 100}%", "--slo-p99", f"{arms.SLO_P99_US[wire] // 1000}ms",
            "--json", out]
    for name, pid in watch.items():
        argv += ["--watch", f"{name}={pid}"]
    seconds = (shape.warmup + shape.duration) * len(shape.concurrency) * 1.5 + 60
    stage.run("twp-loadgen", argv, cpus, seconds=seconds, ok=(0, 3))  # 3: an SLO was missed, which the row says
    steps = procs.read_json(out).get("steps") or []
    os.unlink(out)
    if len(steps) != len(shape.concurrency):
        raise Trouble(f"twp-loadgen reported {len(steps)} steps instead of {len(shape.concurrency)}")
    return steps


def measure(stage, product, arm, origin, tls, shape, pins, load=arms.GET):
    """Starts `product`, drives it, stops it. The steps' dicts."""
    running = product.start(stage, arm, origin.urls[arm.origin], tls, pins.proxy)
    try:
        check_path(running, origin, arm, tls)
        check_load(running, arm, tls, load, stage)
        watch = {"proxy": running.proc.pid, "origin": origin.proc.pid}
        return drive(stage, running.url, arm.client, tls, shape, watch, pins.loadgen, load)
    finally:
        stage.stop(running.proc)


def calibrate(stage, wire, tls, shape, pins, load=arms.GET):
    """The load generator straight at an origin. The origin runs on the proxy's CPU, which is where the proxy does
    that work; the generator where it always runs."""
    origin = Origin(stage, tls, pins.proxy)
    try:
        return drive(stage, origin.urls[wire], wire, tls, shape, {"origin": origin.proc.pid}, pins.loadgen, load)
    finally:
        stage.stop(origin.proc)
