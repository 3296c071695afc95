"""Counting the system calls of a running program."""
import pathlib
import re
import shutil
import signal

from .paths import Trouble
from .procs import wait_until


class Strace:
    """Attached to a process and all its threads from construction to stop()."""

    def __init__(self, stage, pid, *options):
        if not shutil.which("strace"):
            raise Trouble("strace is not there: run scripts/setup --dev")
        self.stage, self.out = stage, f"{stage.dir}/strace-{pid}"
        self.proc = stage.start("strace", ["strace", "-f", "-o", self.out, *options, "-p", str(pid)])
        wait_until(self._attached, 10, "strace to attach")

    def _attached(self):
        if not self.proc.alive():
            raise Trouble(f"strace could not attach: {self.proc.tail()}")
        return "attached" in self.proc.tail()

    def stop(self):
        """Detaches; what strace wrote."""
        self.proc.popen.send_signal(signal.SIGINT)
        self.proc.popen.wait(timeout=20)
        self.stage.stop(self.proc)
        return pathlib.Path(self.out).read_text(encoding="utf-8", errors="replace")


def counts(summary):
    """{system call: number of calls} from the table of strace -c."""
    found = {}
    for line in summary.splitlines():
        match = re.match(r"\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(?:\d+\s+)?(\w+)\s*$", line)
        if match and match.group(2) != "total":
            found[match.group(2)] = int(match.group(1))
    return found
