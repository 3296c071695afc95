"""A run of run-rps: which cells, in which order, and the file that grows with each."""
import datetime
import glob
import os
import socket

from . import arms, table, triples
from .paths import Trouble, program, version_of
from .procs import Stage, say


def now():
    return datetime.datetime.now(datetime.timezone.utc)


class Session:
    def __init__(self, mode, shape, group, products, out, resume, wires=None):
        self.mode, self.shape, self.products = mode, shape, products
        self.what = arms.select(mode, group, wires)
        self.arms, self.load = self.what.arms, self.what.load
        self.pins = triples.Pins.default()
        os.makedirs(out, exist_ok=True)
        self.path = (self._unfinished(out) if resume else None) or os.path.join(
            out, f"{mode}-{now().strftime('%Y%m%dT%H%M%SZ')}.csv")
        self.rows = table.read(self.path) if os.path.exists(self.path) else []
        self.run_id = self.rows[0]["run_id"] if self.rows else os.path.basename(self.path)[:-len(".csv")]
        self.commit = version_of(program("twp-proxy"))[1]
        if self.rows and self.rows[0]["commit"] != self.commit:
            raise Trouble(f"{self.path} was measured at commit {self.rows[0]['commit']}, the programs are of "
                          f"{self.commit}: cannot go on with it")

    def _unfinished(self, out):
        """The newest file of this mode; cells that it already has are not measured again."""
        files = sorted(glob.glob(os.path.join(glob.escape(out), f"{self.mode}-*.csv")))
        return files[-1] if files else None

    # --- rows ---------------------------------------------------------------------------------------------

    def _base(self, arm, client, origin, product, version, repeat):
        row = dict.fromkeys(table.COLUMNS, "")
        row.update(run_id=self.run_id, commit=self.commit, utc=now().strftime("%Y-%m-%dT%H:%M:%SZ"),
                   host=socket.gethostname(), cores=os.cpu_count(), arm=arm, mode=self.mode, client=client,
                   origin=origin, product=product, version=version, repeat=repeat)
        return row

    def _add(self, base, steps):
        for step in steps:
            row = dict(base)
            row.update({k: str(v).lower() if isinstance(v, bool) else v for k, v in step.items()
                        if k in table.COLUMNS and row[k] == "" and v is not None})
            for key in ("warmup_s", "duration_s"):
                row[key] = row[key] if row[key] != "" else getattr(self.shape, key[:-2])
            self.rows.append(row)
        table.fill_limit_ratios(self.rows)
        table.write(self.path, self.rows)

    def _have(self, arm, product, repeat):
        return any(r["arm"] == arm and r["product"] == product and str(r["repeat"]) == str(repeat) for r in self.rows)

    def _without_numbers(self, arm, product, word, version):
        steps = [{"concurrency": c, "rps": word, "requests": word, "proxy_cpu_us_per_req": word, "limit_ratio": word,
                  "proxy_rss_peak_bytes": word} for c in self.shape.concurrency]
        self._add(self._base(arm.name, arm.client, arm.origin, product.name, version, 1), steps)

    # --- the run ------------------------------------------------------------------------------------------

    def run(self):
        with Stage() as stage:
            tls = triples.make_certificates(stage)
            self._calibrate(stage, self.what.wires, tls, 1)
            origin = triples.Origin(stage, tls, self.pins.origin)
            versions = {p.name: p.version() for p in self.products}
            for number, arm in enumerate(self.arms, 1):
                self._run_arm(stage, f"arm {number}/{len(self.arms)} {arm.name}", arm, origin, tls, versions)
            stage.stop(origin.proc)
            self._calibrate(stage, self.what.wires, tls, 2)

    def _calibrate(self, stage, wires, tls, repeat):
        for wire in wires:
            name = f"{table.DIRECT} {wire}"
            if self._have(name, table.DIRECT, repeat):
                continue
            say(f"calibration {repeat}/2 {wire}: load generator straight at the origin ...")
            steps = triples.calibrate(stage, wire, tls, self.shape, self.pins, self.load)
            version = version_of(program("twp-origin"))[0]
            self._add(self._base(name, wire, wire, table.DIRECT, version, repeat), steps)

    def _run_arm(self, stage, title, arm, origin, tls, versions):
        able = []
        for product in self.products:
            word = (table.NOT_POSSIBLE if not product.possible(arm, self.load) else
                    table.NOT_MEASURED if versions[product.name] is None else None)
            if word is None:
                able.append(product)
            elif not self._have(arm.name, product.name, 1):
                say(f"{title}: {product.name} {word}")
                self._without_numbers(arm, product, word, versions[product.name] or word)
        for repeat in range(1, self.shape.repeats + 1):
            for product in arms.order(able, repeat):
                if self._have(arm.name, product.name, repeat):
                    continue
                say(f"{title}: {product.name} repeat {repeat}/{self.shape.repeats} ...")
                steps = triples.measure(stage, product, arm, origin, tls, self.shape, self.pins, self.load)
                self._add(self._base(arm.name, arm.client, arm.origin, product.name, versions[product.name], repeat),
                          steps)
                last = steps[-1]
                say(f"    {table.fmt(table.number(last, 'rps'), 0)} requests/s, "
                    f"{table.fmt(table.number(last, 'proxy_cpu_us_per_req'), 2)} us CPU of the proxy a request, "
                    f"{table.fmt(table.number(last, 'errors'), 0)} errors")
