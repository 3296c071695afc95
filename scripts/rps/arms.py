"""Which pairs of wires are measured, with which load, and how long."""
import dataclasses

from .paths import Trouble

# Of INTERFACES: h1c HTTP/1.1 cleartext, h1 HTTP/1.1 over TLS, h2c HTTP/2 cleartext, h2 HTTP/2 over TLS.
WIRES = ("h1c", "h1", "h2c", "h2")
TCP_WIRES = frozenset(WIRES)
TLS_WIRES = frozenset({"h1", "h2"})
HTTP2_WIRES = frozenset({"h2c", "h2"})
SCHEME = {"h1c": "http", "h1": "https", "h2c": "http", "h2": "https"}          # of what listens
TARGET_SCHEME = {"h1c": "http", "h1": "https", "h2c": "h2c", "h2": "https"}    # of what one of our programs connects to
HTTP = {"h1c": "h1", "h1": "h1", "h2c": "h2", "h2": "h2"}                      # --http and --origin-http


def target(wire, url):
    """The URL of what listens at `url` (http or https), as our programs are told to speak `wire` to it."""
    return f"{TARGET_SCHEME[wire]}://{url.split('://', 1)[1]}"


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


@dataclasses.dataclass(frozen=True)
class Load:
    """What is asked for, again and again."""
    name: str
    path: str
    arguments: tuple = ()


GET = Load("get", "/", ("--expect-length", "56"))
GRPC = Load("grpc", "/twp.Echo/Unary", ("--workload", "grpc"))
WS = Load("ws", "/ws", ("--workload", "ws"))


@dataclasses.dataclass(frozen=True)
class Mode:
    arms: tuple
    load: Load = GET

    @property
    def wires(self):
        return tuple(w for w in WIRES if any(w in (a.client, a.origin) for a in self.arms))


def _arms(*keys):
    return tuple(Arm(*k.split("-")) for k in keys)


_SAME = _arms(*(f"{w}-{w}" for w in WIRES))
_TERMINATE = _arms("h1-h1c", "h2c-h1c", "h2-h1c")  # whatever the client speaks, the origin speaks h1c
_PRODUCT = tuple(Arm(c, o) for c in WIRES for o in WIRES)
MODES = {
    "compare-spot": Mode(_arms("h1c-h1c", "h1-h1c", "h1c-h1", "h1-h1")),
    "compare-same": Mode(_SAME),
    "compare-terminate": Mode(_TERMINATE),
    "compare-bridges": Mode(tuple(a for a in _PRODUCT if a not in _SAME + _TERMINATE)),
    "compare-product": Mode(_PRODUCT),
    "compare-grpc": Mode(_arms("h2c-h2c", "h2-h2c", "h2-h2"), GRPC),
    "compare-ws-h1tls": Mode(_arms("h1-h1c", "h1-h1"), WS),
    "compare-ws-h2": Mode(_arms("h2-h1c", "h2-h2"), WS),
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

SLO_P99_US = {"h1c": 50_000, "h1": 50_000, "h2c": 100_000, "h2": 100_000}
SLO_ERRORS = 0.001


def wires_of(text):
    """The wires that "tcp" or a list such as "h1c,h2" stands for."""
    names = TCP_WIRES if text == "tcp" else frozenset(text.split(","))
    if not names <= set(WIRES):
        raise Trouble(f"--wires '{text}': tcp, or some of {','.join(WIRES)}")
    return names


def select(mode, group=None, wires=None):
    """A mode with fewer arms. `group`: an arm ("h1-h1c"), or a wire for all arms with it on the client side. `wires`:
    both sides must be among them (see wires_of)."""
    if mode not in MODES:
        raise Trouble(f"unknown mode '{mode}'; there is: {', '.join(MODES)}")
    chosen = MODES[mode].arms
    if wires:
        allowed = wires_of(wires)
        chosen = tuple(a for a in chosen if {a.client, a.origin} <= allowed)
        if not chosen:
            raise Trouble(f"no arm of {mode} has only the wires '{wires}'")
    if group:
        key = group.replace("->", "-")
        known = chosen
        chosen = tuple(a for a in chosen if key in (a.key, a.client))
        if not chosen:
            raise Trouble(f"no arm matches '{group}'; there are: {', '.join(a.key for a in known)}")
    return dataclasses.replace(MODES[mode], arms=chosen)


def order(products, repeat):
    """ABBA: every second repeat runs the products in the opposite order, so that drift cancels."""
    return list(products) if repeat % 2 == 1 else list(reversed(products))
