"""Where things are: the checkout, the programs, the peers' root."""
import os
import pathlib
import re
import subprocess

REPO = pathlib.Path(__file__).resolve().parents[2]


class Trouble(Exception):
    """One line for a person: what is wrong and what to do."""


def bin_dir(preset="release"):
    return pathlib.Path(os.environ.get("TWP_BIN_DIR") or REPO / "build" / preset / "bin")


def program(name, preset="release"):
    path = bin_dir(preset) / name
    if not os.access(path, os.X_OK):
        raise Trouble(f"{path} is not there: run cmake --preset {preset} && cmake --build --preset {preset}")
    return str(path)


def version_of(path):
    """(version, commit) that a program of ours prints."""
    text = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20, check=False).stdout
    found = re.search(r"\S+ (\S+) \(([^,)]+)", text)
    return (found.group(1), found.group(2)) if found else ("unknown", "unknown")


def deps_dir():
    """Where scripts/setup puts what it fetches. The rule is in scripts/lib/common.sh."""
    command = 'source "$1/scripts/lib/common.sh"; twp_deps_dir'
    out = subprocess.run(["bash", "-euc", command, "_", str(REPO)], capture_output=True, text=True, check=False)
    return pathlib.Path(out.stdout.strip() or REPO / ".deps")


def peers_dir():
    """The root made by scripts/peers/setup, or None."""
    given = os.environ.get("TWP_PEERS_DIR")
    root = pathlib.Path(given) if given else deps_dir() / "peers"
    return root if (root / "usr").is_dir() else None


def congestion_control():
    try:
        return pathlib.Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text(encoding="ascii").strip()
    except OSError:
        return "unknown"


def cpu_model():
    try:
        found = re.search(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.M)
        return found.group(1).strip() if found else "unknown"
    except OSError:
        return "unknown"
