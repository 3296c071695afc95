"""What the checks share: one line for each measured value, and the bench of origin and proxy."""
import contextlib
import sys

from . import arms, products, triples
from .paths import Trouble
from .procs import Stage

SKIPPED = 77  # exit status: cannot be checked here


class Skip(Exception):
    """Why this machine cannot run the check."""


class Report:
    """Prints each value with its bound and remembers whether one was broken."""

    def __init__(self):
        self.good = True

    def value(self, what, value, holds, bound, unit=""):
        self.good = self.good and bool(holds)
        shown = f"{value:,.2f}" if isinstance(value, float) else str(value)
        unit = f" {unit}" if unit else ""
        print(f"{'ok  ' if holds else 'FAIL'}  {what}: {shown}{unit} ({bound})", flush=True)

    def at_most(self, what, value, most, unit=""):
        self.value(what, value, value <= most, f"at most {most}", unit)

    def at_least(self, what, value, least, unit=""):
        self.value(what, value, value >= least, f"at least {least}", unit)


def main(check):
    """Runs `check(report)`; the exit status is 0 when every value held, 77 when it cannot run here."""
    report = Report()
    try:
        check(report)
    except Skip as e:
        print(f"skipped: {e}")
        sys.exit(SKIPPED)
    except Trouble as e:
        print(f"FAIL  {e}")
        sys.exit(1)
    sys.exit(0 if report.good else 1)


class Bench:
    """Origin, certificates and CPUs for a check."""

    def __init__(self, stage):
        self.stage, self.pins = stage, triples.Pins.default()
        self.tls = triples.make_certificates(stage)
        self.origin = triples.Origin(stage, self.tls, self.pins.origin)

    def proxy(self, arm=arms.Arm("h1c", "h1c")):
        return products.Twp().start(self.stage, arm, self.origin.urls[arm.origin], self.tls, self.pins.proxy)

    def load(self, url, seconds, watch, wire="h1c", concurrency=64, warmup=0.0):
        """One step of the load generator; its numbers."""
        shape = arms.Shape("check", warmup, seconds, (concurrency,), 1)
        return triples.drive(self.stage, url, wire, self.tls, shape, watch, self.pins.loadgen)[0]


@contextlib.contextmanager
def bench():
    with Stage() as stage:
        yield Bench(stage)
