#include "support/proxy_rig.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>

#include "base/log.h"
#include "config/validate.h"

namespace twp::test {
namespace {

[[noreturn]] void fatal(const std::string& what) {
  std::fprintf(stderr, "proxy rig: %s\n", what.c_str());
  std::abort();
}

}  // namespace

RawOrigin::RawOrigin(Worker& worker) {
  auto listener = Listener::open(worker, *Address::parse("127.0.0.1", 0), {}, *this);
  if (!listener) fatal(listener.error().what);
  listener_ = std::move(*listener);
}

void RawOrigin::on_accept(std::unique_ptr<TcpTransport> transport) noexcept {
  const std::size_t i = connections.size();
  auto& peer = *connections.emplace_back(std::make_unique<RawPeer>(std::move(transport)));
  peer.on_input = [this, i](RawPeer& p) {
    if (on_input) on_input(p, i);
  };
}

void RawOrigin::answer_with(std::vector<std::string> answers) {
  auto seen = std::make_shared<std::vector<std::size_t>>();
  auto next = std::make_shared<std::size_t>(0);
  on_input = [answers = std::move(answers), seen, next](RawPeer& p, std::size_t i) {
    seen->resize(std::max(seen->size(), i + 1));
    for (std::size_t at; (at = p.got().find("\r\n\r\n", (*seen)[i])) != std::string::npos; (*seen)[i] = at + 4) {
      p.send(answers[std::min(*next, answers.size() - 1)]);
      ++*next;
    }
  };
}

std::string RawOrigin::got() const {
  std::string all;
  for (const auto& c : connections) all += c->got();
  return all;
}

ProxyRig::ProxyRig() { set_log_level(LogLevel::error); }

void ProxyRig::start(const std::function<void(config::Config&)>& change) {
  config::Config c;
  c.listeners.push_back({"http://127.0.0.1:0", {}});
  config::Cluster cluster;
  cluster.name = "main";
  cluster.origins.push_back({"http://127.0.0.1:" + std::to_string(origin.port()), 1});
  c.clusters.push_back(std::move(cluster));
  config::Route route;
  route.cluster = "main";
  c.routes.push_back(std::move(route));
  if (change) change(c);
  if (const auto problems = config::validate(c); !problems.empty()) fatal("the configuration is not valid");
  auto snapshot = Snapshot::prepare(std::move(c), ProcessSecrets::random());
  if (!snapshot) fatal(snapshot.error().what);
  auto opened = Shard::open(worker, *snapshot, nullptr);
  if (!opened) fatal(opened.error().what);
  shard = std::move(*opened);
}

RawPeer& ProxyRig::connect() {
  return *clients.emplace_back(std::make_unique<RawPeer>(TcpTransport::connect(worker, shard->addresses().at(0), {})));
}

RawPeer& ProxyRig::client(std::string_view octets) {
  RawPeer& c = connect();
  c.send(octets);
  return c;
}

std::string strict_view(std::string_view octets) {
  if (octets.empty()) return "nothing";
  const std::size_t end = octets.find("\r\n\r\n");
  if (end == std::string_view::npos) return "cut";
  std::string_view head = octets.substr(0, end + 2);
  std::string_view rest = octets.substr(end + 4);
  long long length = -1;
  int hosts = 0, codings = 0;
  bool first = true;
  while (!head.empty()) {
    const std::size_t eol = head.find("\r\n");
    std::string line(head.substr(0, eol));
    head.remove_prefix(eol + 2);
    if (line.find_first_of(std::string_view("\r\n\0", 3)) != std::string::npos) return "control octet in a line";
    if (std::exchange(first, false)) {
      if (std::count(line.begin(), line.end(), ' ') != 2) return "request line: " + line;
      continue;
    }
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || colon == 0 || line.find_first_of(" \t") < colon) return "field: " + line;
    std::transform(line.begin(), line.end(), line.begin(), [](unsigned char ch) { return static_cast<char>(std::tolower(ch)); });
    const std::string name = line.substr(0, colon), value = line.substr(line.find_first_not_of(' ', colon + 1) == std::string::npos
                                                                            ? line.size()
                                                                            : line.find_first_not_of(' ', colon + 1));
    if (name == "host") ++hosts;
    if (name == "transfer-encoding") {
      if (value != "chunked") return "coding " + value;
      ++codings;
    }
    if (name == "content-length") {
      if (length >= 0 || value.empty() || value.find_first_not_of("0123456789") != std::string::npos) return "length " + value;
      length = std::stoll(value);
    }
  }
  if (hosts != 1) return std::to_string(hosts) + " Host fields";
  if (codings > 1 || (codings == 1 && length >= 0)) return "two framings";
  if (codings == 1) {
    for (;;) {
      const std::size_t eol = rest.find("\r\n");
      if (eol == std::string_view::npos) return "cut";
      const std::string digits(rest.substr(0, eol));
      if (digits.empty() || digits.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos) return "chunk size " + digits;
      const auto n = std::stoull(digits, nullptr, 16);
      rest.remove_prefix(eol + 2);
      if (n == 0) break;
      if (rest.size() < n + 2) return "cut";
      if (rest.substr(n, 2) != "\r\n") return "chunk end";
      rest.remove_prefix(n + 2);
    }
    const std::size_t last = rest.starts_with("\r\n") ? 0 : rest.find("\r\n\r\n");
    if (last == std::string_view::npos) return "cut";
    rest.remove_prefix(last == 0 ? 2 : last + 4);
    return rest.empty() ? "one" : "more: " + std::string(rest);
  }
  const std::size_t n = length < 0 ? 0 : static_cast<std::size_t>(length);
  if (rest.size() < n) return "cut";
  return rest.size() == n ? "one" : "more: " + std::string(rest.substr(n));
}

}  // namespace twp::test
