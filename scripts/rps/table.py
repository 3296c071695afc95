"""The CSV (its header row is the contract), medians, and the Markdown made from them."""
import csv
import os
import statistics
import tempfile

from .paths import Trouble

COLUMNS = (
    "run_id", "commit", "utc", "host", "cores", "arm", "mode", "client", "origin", "product", "version", "repeat",
    "concurrency", "connections", "warmup_s", "duration_s", "requests", "errors", "error_rate", "rps", "goodput_mib_s",
    "p50_us", "p90_us", "p99_us", "p999_us", "max_us", "slo_p99_us", "slo_pass", "proxy_rss_peak_bytes",
    "proxy_cpu_avg_pct", "proxy_cpu_us_per_req", "origin_cpu_us_per_req", "loadgen_cpu_us_per_req", "limit_ratio")

NOT_MEASURED = "not measured"  # the product is not on this machine
NOT_POSSIBLE = "not possible"  # the product cannot do this path
DIRECT = "direct"              # calibration: load generator and origin without a proxy between


def read(path):
    try:
        with open(path, newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            rows = list(reader)
    except OSError as e:
        raise Trouble(f"{path}: {e.strerror}") from e
    if tuple(reader.fieldnames or ()) != COLUMNS:
        raise Trouble(f"{path}: the header row is not that of a run-rps file")
    return rows


def write(path, rows):
    """Replaces the file as a whole: a reader sees the old or the new one."""
    folder = os.path.dirname(path) or "."
    fd, name = tempfile.mkstemp(dir=folder, prefix=".csv-")
    try:
        os.fchmod(fd, 0o644)
        with os.fdopen(fd, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        os.replace(name, path)
    except BaseException:
        if os.path.exists(name):
            os.unlink(name)
        raise


def number(row, column):
    """The value as a float, or None where nothing was measured."""
    try:
        return float(row[column])
    except (TypeError, ValueError, KeyError):
        return None


def median(rows, column):
    values = [v for v in (number(r, column) for r in rows) if v is not None]
    return statistics.median(values) if values else None


def spread(rows, column):
    """(highest - lowest) / median over the repeats: how far to trust the median."""
    values = [v for v in (number(r, column) for r in rows) if v is not None]
    if len(values) < 2 or statistics.median(values) == 0:
        return None
    return (max(values) - min(values)) / statistics.median(values)


def cells(rows):
    """{(arm, concurrency): {product: [rows of the repeats]}} in the order of the file, calibrations left out."""
    grouped = {}
    for row in rows:
        if row["product"] != DIRECT and row["concurrency"]:
            grouped.setdefault((row["arm"], int(row["concurrency"])), {}).setdefault(row["product"], []).append(row)
    return grouped


def absent(rows):
    """What to print instead of numbers: "not measured", "not possible", or None."""
    for word in (NOT_POSSIBLE, NOT_MEASURED):
        if all(r["rps"] == word for r in rows):
            return word
    return None


def ratio(a, b):
    return a / b if a is not None and b else None


def fmt(value, digits=1, unit=""):
    return "-" if value is None else f"{value:,.{digits}f}{unit}"


def markdown(rows, ours="twp", at=None):
    """One row per arm and product at each concurrency; `at` keeps one concurrency only."""
    head = ("| arm | c | product | version | rps | p50 us | p99 us | proxy us/req | limit ratio | RSS MiB | errors "
            "| twp rps / peer | twp cpu / peer | spread |")
    lines = [head, "|" + "---|" * (head.count("|") - 1)]
    for (arm, concurrency), products in cells(rows).items():
        if at is not None and concurrency != at:
            continue
        mine = products.get(ours, [])
        for product, repeats in products.items():
            lines.append(_line(arm, concurrency, product, repeats, mine if product != ours else []))
    return "\n".join(lines)


def _line(arm, concurrency, product, repeats, mine):
    version = repeats[0]["version"]
    word = absent(repeats)
    if word:
        return f"| {arm} | {concurrency} | {product} | {version} | {word} |" + " |" * 9
    rps, cpu = median(repeats, "rps"), median(repeats, "proxy_cpu_us_per_req")
    rss = median(repeats, "proxy_rss_peak_bytes")
    faster = ratio(median(mine, "rps"), rps)
    cheaper = ratio(median(mine, "proxy_cpu_us_per_req"), cpu)
    apart = spread(repeats, "proxy_cpu_us_per_req")
    errors = sum(number(r, "errors") or 0 for r in repeats)
    return (f"| {arm} | {concurrency} | {product} | {version} | {fmt(rps, 0)} | {fmt(median(repeats, 'p50_us'), 0)} "
            f"| {fmt(median(repeats, 'p99_us'), 0)} | {fmt(cpu, 2)} | {fmt(median(repeats, 'limit_ratio'), 2)} "
            f"| {fmt(rss / 2**20 if rss else None)} | {errors:.0f} | {fmt(faster, 2, 'x')} | {fmt(cheaper, 2, 'x')} "
            f"| {fmt(apart * 100 if apart is not None else None, 0, ' %')} |")


def calibration_markdown(rows):
    grouped = {}
    for row in rows:
        if row["product"] == DIRECT:
            grouped.setdefault((row["client"], int(row["concurrency"])), []).append(row)
    lines = ["| wire | c | direct rps | origin us/req (server leg) | loadgen us/req (client leg) |", "|---|---|---|---|---|"]
    for (wire, concurrency), repeats in grouped.items():
        lines.append(f"| {wire} | {concurrency} | {fmt(median(repeats, 'rps'), 0)} "
                     f"| {fmt(median(repeats, 'origin_cpu_us_per_req'), 2)} "
                     f"| {fmt(median(repeats, 'loadgen_cpu_us_per_req'), 2)} |")
    return "\n".join(lines)


def fill_limit_ratios(rows):
    """limit_ratio = proxy us/req / (server leg of the client's wire + client leg of the origin's wire), from the
    direct runs at the same concurrency of the same file."""
    direct = {}
    for row in rows:
        if row["product"] == DIRECT:
            direct.setdefault((row["client"], row["concurrency"]), []).append(row)
    for row in rows:
        cpu = number(row, "proxy_cpu_us_per_req")
        if row["product"] == DIRECT or cpu is None:
            continue
        server = median(direct.get((row["client"], row["concurrency"]), []), "origin_cpu_us_per_req")
        client = median(direct.get((row["origin"], row["concurrency"]), []), "loadgen_cpu_us_per_req")
        if server and client:
            row["limit_ratio"] = f"{cpu / (server + client):.4f}"
