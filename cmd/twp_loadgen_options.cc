#include "cmd/twp_loadgen_options.h"

#include <unistd.h>

#include "base/ascii.h"
#include "loadgen/units.h"
#include "twp_build_info.h"

namespace twp::loadgen_cli {
namespace {

Result<void> duration(const std::string& option, const std::string& text, Duration& out) {
  const auto d = load::parse_duration(text);
  if (!d) return fail(Fault::bad_config, option + " '" + text + "': write a time such as 8s, 500ms or 2m");
  out = *d;
  return {};
}

Result<void> size(const std::string& option, const std::string& text, std::uint64_t& out) {
  if (text.empty()) return {};
  const auto n = load::parse_size(text);
  if (!n) return fail(Fault::bad_config, option + " '" + text + "': write a size such as 4096, 64k or 1MiB");
  out = *n;
  return {};
}

Result<void> headers(const std::vector<std::string>& lines, load::Plan& plan) {
  for (const std::string& line : lines) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) return fail(Fault::bad_config, "-H '" + line + "': write 'Name: value'");
    plan.headers.emplace_back(line.substr(0, colon), std::string(trim_ows(std::string_view(line).substr(colon + 1))));
  }
  return {};
}

Result<void> slo(const Arguments& a, load::Plan& plan) {
  if (!a.slo_errors.empty()) {
    const auto f = load::parse_fraction(a.slo_errors);
    if (!f) return fail(Fault::bad_config, "--slo-errors '" + a.slo_errors + "': write a share such as 0.1% or 0.001");
    plan.slo.errors = *f;
    plan.slo.given = true;
  }
  if (!a.slo_p99.empty()) {
    Duration d{};
    if (auto ok = duration("--slo-p99", a.slo_p99, d); !ok) return ok;
    plan.slo.p99_us = static_cast<std::uint64_t>(d.count() / 1000);
    plan.slo.given = plan.slo.p99_given = true;
  }
  return {};
}

void add_request_options(CLI::App& c, Arguments& a) {
  c.add_option("-X,--method", a.plan.method, "Request method")->capture_default_str()->group("Request");
  c.add_option("-H,--header", a.headers, "Header field, 'Name: value'; may be repeated")->allow_extra_args(false)->group("Request");
  CLI::Option* size_option = c.add_option("--body-size", a.body_size, "Send a generated body of so many octets (64k, 1MiB ...)")->type_name("N")->group("Request");
  c.add_option("--body", a.plan.body_file, "Send this file as the body")->type_name("FILE")->excludes(size_option)->group("Request");
  c.add_option("--workload", a.workload,
               "request; early: the response comes during the upload (/early); duplex: the body comes back as it is sent (/echo); ws: WebSocket echo (/ws); grpc: unary calls (/twp.Echo/Unary)")
      ->capture_default_str()->group("Request");
  c.add_flag("--new-connection", a.plan.new_connection, "Each request on a connection of its own; connecting is part of the time")->group("Request");
  c.add_option("--read-rate", a.read_rate, "Read each response at so many octets a second")->type_name("N")->group("Request");
  c.add_option("--host", a.plan.host, "Host header and TLS name instead of the URL's")->type_name("NAME")->group("Connection");
  c.add_option("--connect-to", a.plan.connect_to, "Connect here instead of the URL's host and port")->type_name("HOST:PORT")->group("Connection");
  c.add_option("--ca", a.plan.ca_file, "Trust the CAs in this PEM file instead of the system's")->type_name("FILE")->group("Connection");
  c.add_flag("--insecure", a.plan.insecure, "Do not verify certificates")->group("Connection");
  c.add_flag("--no-resume", a.no_resume, "Never resume TLS sessions")->group("Connection");
  c.add_option("--http", a.plan.http, "HTTP version: h1, h2, or auto, which is what ALPN chooses (default: h1 for http://, auto for https://)")
      ->check(CLI::IsMember({"h1", "h2", "auto"}))->group("Connection");
}

void add_check_options(CLI::App& c, Arguments& a) {
  c.add_option("--expect-status", a.status, "Statuses that are right: 2xx, 200, 200-299; any other is an error")->capture_default_str()->group("Checks");
  c.add_option("--expect-length", a.plan.expect_length, "Octets that each response body must have (default: what its head says)")
      ->type_name("N")->check(CLI::NonNegativeNumber)->group("Checks");
  a.verify = c.add_option("--verify-body", a.plan.verify_file,
                          "Compare each response body with FILE, or without FILE with the first one of the run")
                 ->type_name("[FILE]")->expected(0, 1)->group("Checks");
  c.add_option("--timeout", a.timeout, "A request that takes longer is an error")->capture_default_str()->group("Checks");
  c.add_option("--slo-errors", a.slo_errors, "Share of errors to stay under (default 0.1%); exit status 3 when missed")->type_name("SHARE")->group("Checks");
  c.add_option("--slo-p99", a.slo_p99, "99th percentile to stay under (default 50ms, HTTP/2 100ms); exit status 3 when missed")->type_name("TIME")->group("Checks");
}

void add_report_options(CLI::App& c, Arguments& a) {
  c.add_option("--watch", a.watch, "Report CPU and memory of a process and its descendants, NAME=PID; proxy and origin have columns in the CSV")
      ->allow_extra_args(false)->type_name("NAME=PID")->group("Report");
  c.add_option("--csv", a.plan.csv_file, "Append a row for each step to this file")->type_name("FILE")->group("Report");
  c.add_option("--json", a.plan.json_file, "Write the results as JSON; - for standard output (the table then goes to standard error)")->type_name("FILE")->group("Report");
  c.add_option("--limit-us", a.plan.limit_us, "CPU that a perfect proxy needs a request, microseconds: makes limit_ratio")->check(CLI::PositiveNumber)->group("Report");
  const auto column = [&](const char* name, std::string& into, const char* what) { c.add_option(name, into, what)->group("Report columns"); };
  column("--run-id", a.plan.run_id, "run_id (default: made from time and process)");
  column("--arm", a.plan.arm, "arm (default: the client wire)");
  column("--mode", a.plan.mode, "mode");
  column("--client", a.plan.client, "client: wire to what is loaded (default: by the URL)");
  column("--origin", a.plan.origin, "origin: wire behind it");
  column("--product", a.plan.product, "product");
  column("--product-version", a.plan.version, "version (of the product)");
  c.add_option("--repeat", a.plan.repeat, "repeat")->capture_default_str()->group("Report columns");
}

}  // namespace

void add_options(CLI::App& c, Arguments& a, bool ramp) {
  c.add_option("URL", a.url, "What to load: http://HOST[:PORT][/PATH], https://..., or h2c://... for HTTP/2 without TLS")->required();
  if (ramp) {
    c.add_option("-c,--concurrency", a.steps, "Requests in flight, one step each")->type_name("N,N,...")->capture_default_str();
  } else {
    c.add_option("-c,--concurrency", a.concurrency, "Requests in flight; with --rate: connections at hand")->check(CLI::Range(1, 1'000'000))->capture_default_str();
    c.add_option("--rate", a.plan.rate, "Open loop: so many requests a second, timed from when they were due")->type_name("R")->check(CLI::PositiveNumber);
  }
  c.add_option("-m,--streams", a.plan.streams,
               "Requests in flight per connection (default: HTTP/1.1 has 1; with HTTP/2 all spread over min(concurrency, max(4 x cores, 16)) connections)")
      ->type_name("N")->check(CLI::Range(1, 1'000'000));
  c.add_option("-d,--duration", a.duration, "Time to measure, per step")->capture_default_str();
  c.add_option("--warmup", a.warmup, "Time before that, not counted")->capture_default_str();
  c.add_option("-t,--threads", a.plan.threads, "Threads (default: one for each 32 connections, at most one a core)")->type_name("N");
  add_request_options(c, a);
  add_check_options(c, a);
  add_report_options(c, a);
}

Result<void> to_plan(Arguments& a, bool ramp) {
  load::Plan& p = a.plan;
  auto url = config::parse_url(a.url);
  if (!url) return std::unexpected(url.error());
  p.url = std::move(*url);
  p.steps = {a.concurrency};
  if (ramp) {
    auto steps = load::parse_steps(a.steps);
    if (!steps) return fail(Fault::bad_config, "--concurrency '" + a.steps + "': write numbers such as 8,16,32,64");
    p.steps = std::move(*steps);
  }
  auto workload = load::parse_workload(a.workload);
  if (!workload) return std::unexpected(workload.error());
  p.workload = *workload;
  auto status = load::parse_status(a.status);
  if (!status) return std::unexpected(status.error());
  p.expect_status = *status;
  for (const std::string& text : a.watch) {
    auto w = load::parse_watch(text);
    if (!w) return std::unexpected(w.error());
    p.watch.push_back(std::move(*w));
  }
  if (auto ok = duration("-d", a.duration, p.duration); !ok) return ok;
  if (auto ok = duration("--warmup", a.warmup, p.warmup); !ok) return ok;
  if (auto ok = duration("--timeout", a.timeout, p.timeout); !ok) return ok;
  if (auto ok = size("--body-size", a.body_size, p.body_size); !ok) return ok;
  if (auto ok = size("--read-rate", a.read_rate, p.read_rate); !ok) return ok;
  if (auto ok = headers(a.headers, p); !ok) return ok;
  if (auto ok = slo(a, p); !ok) return ok;
  p.resume = !a.no_resume;
  p.verify_body = a.verify->count() != 0;
  p.commit = kCommit;
  if (p.run_id.empty()) p.run_id = std::to_string(wall_now() / 1'000'000'000) + "-" + std::to_string(::getpid());
  return load::complete(p);
}

}  // namespace twp::loadgen_cli
