"""Which pairs of wires are measured, and how long."""
import dataclasses

from .paths import Trouble

WIRES = ("h1c", "h1")  # of INTERFACES: h1c HTTP/1.1 cleartext, h1 HTTP/1.1 over TLS
TLS_WIRES = frozenset({"h1"})
SCHEME = {"h1c": "http", "h1": "https"}


@dataclasses.dataclass(frozen=True)
class Arm:
    client: str
    origin: str

    @property
    def name(self):
        return f"{self.client}->{self.origin}"

    @property
    def key(self):
        return f"{self.client}-{self.origin}"


MODES = {
    "compare-spot": (Arm("h1c", "h1c"), Arm("h1", "h1c"), Arm("h1c", "h1"), Arm("h1", "h1")),
}


@dataclasses.dataclass(frozen=True)
class Shape:
    name: str
    warmup: float   # seconds before the measured part of a step
    duration: float  # seconds measured
    concurrency: tuple
    repeats: int


SHAPES = {
    "full": Shape("full", 2.0, 8.0, (8, 16, 32, 64), 3),
    "medium": Shape("medium", 1.0, 4.0, (64,), 3),
    "quick": Shape("quick", 0.5, 2.0, (64,), 1),
}

SLO_P99_US = {"h1c": 50_000, "h1": 50_000}
SLO_ERRORS = 0.001


def select(mode, group):
    """The arms of a mode; `group` is an arm ("h1-h1c"), or a wire for all arms with it on the client side."""
    if mode not in MODES:
        raise Trouble(f"unknown mode '{mode}'; there is: {', '.join(MODES)}")
    arms = MODES[mode]
    if group:
        key = group.replace("->", "-")
        arms = tuple(a for a in arms if key in (a.key, a.client))
        if not arms:
            raise Trouble(f"no arm matches '{group}'; there are: {', '.join(a.key for a in MODES[mode])}")
    return arms


def order(products, repeat):
    """ABBA: every second repeat runs the products in the opposite order, so that drift cancels."""
    return list(products) if repeat % 2 == 1 else list(reversed(products))
