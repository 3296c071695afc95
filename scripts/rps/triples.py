"""Load generator -> proxy -> origin: starting the three, measuring one cell, and the calibration without a proxy."""
import dataclasses
import http.client
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
    """One twp-origin that serves every wire."""

    def __init__(self, stage, tls, cpus):
        argv = [program("twp-origin"), "--threads", "1"]
        for wire in arms.WIRES:
            argv += ["--listen", f"{arms.SCHEME[wire]}://127.0.0.1:0"]
        self.proc = stage.start("twp-origin", argv + ["--cert", tls.cert, "--key", tls.key], cpus, ready=True)
        self.urls = {}
        for wire in arms.WIRES:
            mine = [u for u in self.proc.urls() if u.startswith(arms.SCHEME[wire] + "://")]
            if not mine:
                raise Trouble(f"twp-origin's ready line has no {arms.SCHEME[wire]} URL: {self.proc.ready}")
            self.urls[wire] = mine[0]


def ask(url, tls, path="/"):
    """One GET; (status, body). The certificate is verified."""
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
    """The proxy answers what the origin answers, over TLS 1.3 with AES-128-GCM where there is TLS."""
    wanted, got = ask(origin.urls[arm.origin], tls), ask(running.url, tls)
    if got != wanted or got[0] != 200:
        raise Trouble(f"{running.proc.name} on {arm.name} answers {got} instead of {wanted}")
    if arm.client in arms.TLS_WIRES:
        check_cipher(running.url, running.proc.name)


def drive(stage, url, wire, tls, shape, watch, cpus):
    """One ramp of twp-loadgen; a dict for each step, its keys named as the columns of the CSV."""
    out = os.path.join(stage.dir, "ramp.json")
    argv = [program("twp-loadgen"), "ramp", url, "--threads", "1",
            "--concurrency", ",".join(map(str, shape.concurrency)),
            "--warmup", f"{shape.warmup * 1000:.0f}ms", "--duration", f"{shape.duration * 1000:.0f}ms",
            "--slo-errors", f"{arms.SLO_ERRORS * 100}%", "--slo-p99", f"{arms.SLO_P99_US[wire] // 1000}ms",
            "--json", out]
    if wire in arms.TLS_WIRES:
        argv += ["--ca", tls.ca]
    for name, pid in watch.items():
        argv += ["--watch", f"{name}={pid}"]
    seconds = (shape.warmup + shape.duration) * len(shape.concurrency) * 1.5 + 60
    stage.run("twp-loadgen", argv, cpus, seconds=seconds, ok=(0, 3))  # 3: an SLO was missed, which the row says
    steps = procs.read_json(out).get("steps") or []
    os.unlink(out)
    if len(steps) != len(shape.concurrency):
        raise Trouble(f"twp-loadgen reported {len(steps)} steps instead of {len(shape.concurrency)}")
    return steps


def measure(stage, product, arm, origin, tls, shape, pins):
    """Starts `product`, drives it, stops it. The steps' dicts."""
    running = product.start(stage, arm, origin.urls[arm.origin], tls, pins.proxy)
    try:
        check_path(running, origin, arm, tls)
        watch = {"proxy": running.proc.pid, "origin": origin.proc.pid}
        return drive(stage, running.url, arm.client, tls, shape, watch, pins.loadgen)
    finally:
        stage.stop(running.proc)


def calibrate(stage, wire, tls, shape, pins):
    """The load generator straight at an origin. The origin runs on the proxy's CPU, which is where the proxy does
    that work; the generator where it always runs."""
    origin = Origin(stage, tls, pins.proxy)
    try:
        return drive(stage, origin.urls[wire], wire, tls, shape, {"origin": origin.proc.pid}, pins.loadgen)
    finally:
        stage.stop(origin.proc)
