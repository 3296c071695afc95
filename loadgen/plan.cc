#include "loadgen/plan.h"

#include <algorithm>

#include "base/ascii.h"
#include "http/header_id.h"

namespace twp::load {
namespace {

// Connections that one thread drives without being the bottleneck, before another thread is worth its wake-ups.
constexpr unsigned kPerThread = 32;
constexpr std::uint64_t kMaxGrpcMessage = 4 * 1024 * 1024;  // what gRPC's own servers take unless told otherwise

// What the URL and --http say together: "h1", "h2", or "auto" when a handshake has to tell.
Result<std::string> chosen_http(const Plan& plan) {
  const bool grpc = plan.workload == Workload::grpc;
  if (grpc && plan.http == "h1") return fail(Fault::bad_config, "--workload grpc needs HTTP/2: --http h2");
  if (plan.url.scheme == config::Scheme::h2c) {
    if (plan.http == "h1") return fail(Fault::bad_config, "h2c:// is HTTP/2: with --http h1 write http://");
    return "h2";
  }
  const bool open = plan.http.empty() || plan.http == "auto";
  if (!open) return plan.http;
  if (grpc) return "h2";
  return plan.url.encrypted() ? "auto" : "h1";
}

Result<void> check_headers(const Plan& plan) {
  for (const auto& [name, value] : plan.headers) {
    if (!is_token(name) || !is_field_value(value))
      return fail(Fault::bad_config, "-H '" + name + ": ...' is not a header field");
    const HeaderId id = header_id(name);
    if ((header_flags(id) & (header_flag::hop | header_flag::framing)) != 0)
      return fail(Fault::bad_config, "-H " + name + ": connection and framing headers are made by the generator itself");
    if (id == HeaderId::host) return fail(Fault::bad_config, "-H Host: use --host");
  }
  return {};
}

Result<void> complete_workload(Plan& plan) {
  switch (plan.workload) {
    case Workload::early:
    case Workload::duplex:
      if (plan.method == "GET") plan.method = "POST";
      if (plan.body_size == 0 && plan.body_file.empty()) plan.body_size = 1024 * 1024;
      break;
    case Workload::ws:
      if (plan.new_connection) return fail(Fault::bad_config, "--workload ws and --new-connection exclude each other");
      if (plan.read_rate != 0) return fail(Fault::bad_config, "--workload ws and --read-rate exclude each other");
      if (plan.body_size == 0 && plan.body_file.empty()) plan.body_size = 64;
      if (plan.body_size > 16 * 1024 * 1024) return fail(Fault::bad_config, "--body-size of a WebSocket message is at most 16MiB");
      break;
    case Workload::grpc:
      if (plan.read_rate != 0) return fail(Fault::bad_config, "--workload grpc and --read-rate exclude each other");
      if (plan.method != "GET" && plan.method != "POST") return fail(Fault::bad_config, "a gRPC call is always a POST");
      plan.method = "POST";
      if (plan.url.target == "/") plan.url.target = "/twp.Echo/Unary";
      if (plan.body_size == 0 && plan.body_file.empty()) plan.body_size = 64;
      if (plan.body_size > kMaxGrpcMessage) return fail(Fault::bad_config, "--body-size of a gRPC message is at most 4MiB");
      break;
    case Workload::request: break;
  }
  if (plan.method == "CONNECT") return fail(Fault::bad_config, "-X CONNECT: tunnels are not a request workload");
  return {};
}

}  // namespace

Result<Workload> parse_workload(std::string_view text) {
  if (text == "request") return Workload::request;
  if (text == "early") return Workload::early;
  if (text == "duplex") return Workload::duplex;
  if (text == "ws") return Workload::ws;
  if (text == "grpc") return Workload::grpc;
  return fail(Fault::bad_config, "--workload '" + std::string(text) + "': one of request, early, duplex, ws, grpc");
}

Result<Watched> parse_watch(std::string_view text) {
  const std::size_t eq = text.find('=');
  const auto pid = eq == std::string_view::npos ? std::nullopt : parse_decimal(text.substr(eq + 1));
  if (eq == 0 || !pid || *pid == 0 || *pid > 0x7fffffff)
    return fail(Fault::bad_config, "--watch '" + std::string(text) + "': write NAME=PID");
  return Watched{std::string(text.substr(0, eq)), static_cast<int>(*pid)};
}

Result<StatusRange> parse_status(std::string_view text) {
  const auto code = [](std::string_view t) -> std::uint16_t {
    const auto v = parse_decimal(t);
    return v && *v >= 200 && *v <= 599 ? static_cast<std::uint16_t>(*v) : std::uint16_t{0};
  };
  StatusRange r;
  if (text.size() == 3 && text.ends_with("xx") && text[0] >= '2' && text[0] <= '5') {
    r.first = static_cast<std::uint16_t>((text[0] - '0') * 100);
    r.last = static_cast<std::uint16_t>(r.first + 99);
  } else {
    const std::size_t dash = text.find('-');
    r.first = code(text.substr(0, dash));
    r.last = dash == std::string_view::npos ? r.first : code(text.substr(dash + 1));
  }
  if (r.first == 0 || r.last < r.first)
    return fail(Fault::bad_config, "--expect-status '" + std::string(text) + "': write 2xx, 200 or 200-299");
  return r;
}

Result<void> complete(Plan& plan) {
  if (plan.url.scheme == config::Scheme::h3)
    return fail(Fault::bad_config, "this version loads http://, https:// and h2c:// URLs");
  if (plan.duration <= Duration::zero()) return fail(Fault::bad_config, "-d must be more than 0");
  if (plan.timeout <= Duration::zero()) return fail(Fault::bad_config, "--timeout must be more than 0");
  if (!is_token(plan.method)) return fail(Fault::bad_config, "-X '" + plan.method + "' is not a method");
  if (!plan.body_file.empty() && plan.body_size != 0)
    return fail(Fault::bad_config, "--body and --body-size exclude each other");
  if (plan.open_loop() && plan.new_connection)
    return fail(Fault::bad_config, "--rate and --new-connection exclude each other");
  if (plan.threads > 256) return fail(Fault::bad_config, "--threads is at most 256");
  if (auto ok = check_headers(plan); !ok) return ok;
  if (auto ok = complete_workload(plan); !ok) return ok;
  if (plan.streams != 0 && plan.new_connection)
    return fail(Fault::bad_config, "--streams and --new-connection exclude each other");
  auto http = chosen_http(plan);
  if (!http) return std::unexpected(http.error());
  if (*http != "auto") return settle_http(plan, *http);
  plan.http = std::move(*http);
  return {};
}

Result<void> settle_http(Plan& plan, std::string_view http) {
  plan.http = http;
  if (!plan.http2() && plan.streams > 1)
    return fail(Fault::bad_config, "--streams " + std::to_string(plan.streams) + ": HTTP/1.1 has one request in flight per connection");
  if (plan.client.empty()) plan.client = plan.http + (plan.url.encrypted() ? "" : "c");
  if (plan.arm.empty()) plan.arm = plan.client;
  if (!plan.slo.p99_given) plan.slo.p99_us = plan.http2() ? 100'000 : 50'000;
  return {};
}

unsigned connections_for(const Plan& plan, unsigned concurrency, unsigned cores) noexcept {
  if (!plan.http2() || plan.new_connection) return concurrency;
  if (plan.streams != 0) return (concurrency + plan.streams - 1) / plan.streams;
  return std::min(concurrency, std::max(4 * cores, 16u));
}

unsigned threads_for(const Plan& plan, unsigned connections, unsigned cores) noexcept {
  // An explicit number is obeyed as far as there are connections; otherwise one thread for each kPerThread.
  const unsigned wanted = plan.threads != 0 ? plan.threads : std::min(cores, (connections + kPerThread - 1) / kPerThread);
  return std::clamp(wanted, 1u, connections);
}

}  // namespace twp::load
