"""Starting programs so that none outlives us, and reading what they cost from /proc.

Every program gets a process group of its own and the kernel's promise of a SIGTERM should we die (PDEATHSIG).
We are the reaper of orphans below us, so that a daemon's workers whose master is gone are found as well.
"""
import contextlib
import ctypes
import json
import os
import pathlib
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from .paths import Trouble

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_libc = ctypes.CDLL(None, use_errno=True)
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_URL = re.compile(r"(?:https?|h3|h2c)://(?:\[[0-9a-fA-F:.]+\]|[\w.-]+):[0-9]+")


def allowed_cpus():
    return sorted(os.sched_getaffinity(0))


def wait_until(condition, seconds, what):
    """Polls `condition` until it is true; Trouble after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise Trouble(f"gave up after {seconds} s waiting for {what}")
        select.select([], [], [], 0.01)


class Proc:
    """One running program with its process group."""

    def __init__(self, name, popen, log):
        self.name, self.popen, self.pid, self.log = name, popen, popen.pid, log
        self.ready = ""

    def urls(self):
        """Every URL of the ready line, in its order."""
        return _URL.findall(self.ready)

    def tail(self, lines=12):
        try:
            return "\n".join(pathlib.Path(self.log).read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])
        except OSError:
            return ""

    def alive(self):
        return self.popen.poll() is None

    def pin(self, cpus):
        for task in os.listdir(f"/proc/{self.pid}/task"):
            os.sched_setaffinity(int(task), cpus)

    def stop(self, grace=5.0):
        """SIGTERM to the group, SIGKILL after `grace` seconds; returns when the group is empty."""
        for sig, seconds in ((signal.SIGTERM, grace), (signal.SIGKILL, 5.0)):
            if not _group_alive(self.popen):
                return
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, sig)
            deadline = time.monotonic() + seconds
            while _group_alive(self.popen) and time.monotonic() < deadline:
                select.select([], [], [], 0.01)


def _group_alive(popen):
    popen.poll()
    reap_orphans()
    try:
        os.killpg(popen.pid, 0)
    except ProcessLookupError:
        return False
    return True


_ours = set()  # pids of Popen objects: those are waited for by Popen, everything else by reap_orphans


def reap_orphans():
    for pid in _children_of({os.getpid()}):
        if pid in _ours:
            continue
        with contextlib.suppress(ChildProcessError, OSError):
            os.waitpid(pid, os.WNOHANG)


def _children_of(pids):
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError):
                stat = pathlib.Path(f"/proc/{entry}/stat").read_text(encoding="utf-8", errors="replace")
                if int(stat.rsplit(")", 1)[1].split()[1]) in pids:
                    found.append(int(entry))
    return found


def family(pid):
    """`pid` and all its descendants."""
    everyone, fresh = [pid], [pid]
    while fresh:
        fresh = [p for p in _children_of(set(fresh)) if p not in everyone]
        everyone += fresh
    return everyone


def cpu_seconds(pid):
    """User and system time of a process and all its descendants, those it has waited for included."""
    total = 0
    for member in family(pid):
        with contextlib.suppress(OSError):
            fields = pathlib.Path(f"/proc/{member}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
            total += sum(int(v) for v in fields[11:15])
    return total / _TICKS


def cpu_seconds_alone(pid):
    """User and system time of one process."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS
    except OSError:
        return 0.0


def rss_bytes(pid):
    """Resident memory of a process and all its descendants."""
    total = 0
    for member in family(pid):
        with contextlib.suppress(OSError):
            total += int(pathlib.Path(f"/proc/{member}/statm").read_text(encoding="ascii").split()[1]) * _PAGE
    return total


class Stage(contextlib.AbstractContextManager):
    """Owns the programs and the temporary folder of one run; leaving it leaves nothing behind."""

    def __init__(self, prefix="twp-"):
        self._procs = []
        self._dirs = []
        self._old = {}
        self.dir = self.make_dir(prefix)

    def make_dir(self, prefix, parent=None):
        path = tempfile.mkdtemp(prefix=prefix, dir=parent)
        self._dirs.append(path)
        return path

    def __enter__(self):
        _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self._old[sig] = signal.signal(sig, _interrupted)
        return self

    def __exit__(self, *_):
        for sig in self._old:
            signal.signal(sig, signal.SIG_IGN)  # nothing may interrupt the cleaning
        for proc in reversed(self._procs):
            proc.stop(grace=3.0)
        for pid in family(os.getpid())[1:]:
            if pid not in _ours:  # an orphan that had left its group
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
        reap_orphans()
        for path in self._dirs:
            shutil.rmtree(path, ignore_errors=True)
        for sig, old in self._old.items():
            signal.signal(sig, old)
        return False

    def start(self, name, argv, cpus=None, ready=False, env=None, seconds=15.0, nofile=None):
        """Starts a program in the background. With `ready`, adds --ready-fd and returns once it is ready."""
        read_end = write_end = -1
        argv = [str(a) for a in argv]
        if ready:
            read_end, write_end = os.pipe()
            argv += ["--ready-fd", str(write_end)]
        log = os.path.join(self.dir, f"{name}-{len(self._procs)}.log")
        try:
            with open(log, "wb") as out:
                popen = subprocess.Popen(  # pylint: disable=consider-using-with
                    argv, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, env=env,
                    pass_fds=(write_end,) if ready else (), preexec_fn=_before_exec(os.getpid(), cpus, nofile))
        except OSError as e:
            raise Trouble(f"cannot start {argv[0]}: {e.strerror}") from e
        finally:
            if ready:
                os.close(write_end)
        _ours.add(popen.pid)
        proc = Proc(name, popen, log)
        self._procs.append(proc)
        if ready:
            try:
                proc.ready = _read_line(read_end, seconds)
            finally:
                os.close(read_end)
            if not proc.ready:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    popen.wait(timeout=1)  # its pipe may close a moment before it is gone
                state = "ended before it was ready" if not proc.alive() else f"not ready after {seconds} s"
                raise Trouble(f"{name} {state}: {' '.join(argv)}\n{proc.tail()}")
        return proc

    def stop(self, proc):
        proc.stop()
        if proc in self._procs:
            self._procs.remove(proc)

    def run(self, name, argv, cpus=None, seconds=600.0, ok=(0,)):
        """Runs a program to its end; its output as text."""
        proc = self.start(name, argv, cpus)
        try:
            code = proc.popen.wait(timeout=seconds)
        except subprocess.TimeoutExpired as e:
            raise Trouble(f"{name} still runs after {seconds} s: {' '.join(map(str, argv))}\n{proc.tail()}") from e
        finally:
            self.stop(proc)
        text = pathlib.Path(proc.log).read_text(encoding="utf-8", errors="replace")
        if code not in ok:
            raise Trouble(f"{name} ended with status {code}: {' '.join(map(str, argv))}\n{proc.tail()}")
        return text


def _interrupted(signum, _frame):
    raise SystemExit(128 + signum)


def _before_exec(parent, cpus, nofile):
    def setup():
        os.setpgid(0, 0)
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)
        if cpus:
            os.sched_setaffinity(0, cpus)
        if nofile:
            import resource  # pylint: disable=import-outside-toplevel
            resource.setrlimit(resource.RLIMIT_NOFILE, nofile)
    return setup


def _read_line(fd, seconds):
    """The first line that arrives on a pipe; empty at end of file or when the time is up."""
    text, deadline = b"", time.monotonic() + seconds
    while b"\n" not in text:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([fd], [], [], left)[0]:
            return ""
        part = os.read(fd, 4096)
        if not part:
            return ""
        text += part
    return text.decode("utf-8", "replace")


def read_json(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError) as e:
        raise Trouble(f"{path}: no usable JSON: {e}") from e


def say(text):
    print(text, file=sys.stderr, flush=True)
