#include "proxy/metrics.h"

#include <dirent.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <iterator>
#include <memory>

#include "base/block.h"

namespace twp {
namespace {

struct Metric {
  std::string_view name;
  std::string_view type;
  std::string_view help;
  std::uint64_t Counters::*member;
};

constexpr Metric kMetrics[] = {
    {"twp_client_connections_total", "counter", "Client connections accepted.", &Counters::connections},
    {"twp_tls_handshake_failures_total", "counter", "Client TLS handshakes that failed.", &Counters::handshake_failures},
    {"twp_requests_total", "counter", "Requests that were routed or answered.", &Counters::requests},
    {"twp_requests_rejected_total", "counter", "Requests refused by the parser.", &Counters::rejected},
    {"twp_exchanges_active", "gauge", "Requests in progress.", &Counters::exchanges_active},
    {"twp_tunnels_total", "counter", "Requests that became a tunnel.", &Counters::tunnels},
    {"twp_request_body_bytes_total", "counter", "Octets of request bodies received.", &Counters::request_octets},
    {"twp_response_body_bytes_total", "counter", "Octets of response bodies received.", &Counters::response_octets},
    {"twp_spliced_bytes_total", "counter", "Octets of bodies moved by splice.", &Counters::spliced_octets},
    {"twp_origin_dials_total", "counter", "Connections to origins begun.", &Counters::dials},
    {"twp_origin_dial_failures_total", "counter", "Connections to origins that failed.", &Counters::dial_failures},
    {"twp_origin_reuses_total", "counter", "Requests sent on a connection that was open.", &Counters::reuses},
    {"twp_replays_total", "counter", "Requests sent once more on another connection.", &Counters::replays},
    {"twp_queue_timeouts_total", "counter", "Requests that waited too long for a connection.", &Counters::queue_timeouts},
    {"twp_queue_full_total", "counter", "Requests turned away by a full queue.", &Counters::queue_full},
    {"twp_origin_connections", "gauge", "Connections to origins, open or being opened.", &Counters::origin_connections},
    {"twp_origin_connections_idle", "gauge", "Connections to origins without a request.", &Counters::origin_idle},
    {"twp_requests_waiting", "gauge", "Requests that wait for a connection.", &Counters::waiting},
};

class Text {
 public:
  void family(std::string_view name, std::string_view type, std::string_view help) {
    out_ += "# HELP ";
    (out_ += name) += ' ';
    (out_ += help) += "\n# TYPE ";
    (out_ += name) += ' ';
    (out_ += type) += '\n';
    name_ = name;
  }
  void sample(std::string_view labels, std::uint64_t value) { line(labels, std::to_string(value)); }
  void sample(std::string_view labels, double value) {
    char text[40];
    std::snprintf(text, sizeof text, "%.3f", value);
    line(labels, text);
  }
  void one(std::string_view name, std::string_view type, std::string_view help, auto value) {
    family(name, type, help);
    sample("", value);
  }
  std::string take() { return std::move(out_); }

 private:
  void line(std::string_view labels, std::string_view value) {
    out_ += name_;
    if (!labels.empty()) ((out_ += '{') += labels) += '}';
    ((out_ += ' ') += value) += '\n';
  }
  std::string out_;
  std::string_view name_;
};

struct Memory {
  std::uint64_t rss = 0, vsize = 0;
};

Memory process_memory() {
  Memory m;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> f(std::fopen("/proc/self/statm", "re"), &std::fclose);
  unsigned long long pages = 0, resident = 0;
  if (f != nullptr && std::fscanf(f.get(), "%llu %llu", &pages, &resident) == 2) {
    const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    m = {resident * page, pages * page};
  }
  return m;
}

std::uint64_t entries(const char* directory) {
  const std::unique_ptr<DIR, int (*)(DIR*)> d(::opendir(directory), &::closedir);
  if (d == nullptr) return 0;
  std::uint64_t n = 0;
  while (::readdir(d.get()) != nullptr) ++n;
  return n < 2 ? 0 : n - 2;  // "." and ".."
}

void process_metrics(Text& t, const ProcessInfo& process) {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& tv) { return static_cast<double>(tv.tv_sec) + static_cast<double>(tv.tv_usec) / 1e6; };
  t.one("process_cpu_seconds_total", "counter", "User and system CPU time.", seconds(usage.ru_utime) + seconds(usage.ru_stime));
  const Memory m = process_memory();
  t.one("process_resident_memory_bytes", "gauge", "Resident memory.", m.rss);
  t.one("process_virtual_memory_bytes", "gauge", "Virtual memory.", m.vsize);
  const std::uint64_t fds = entries("/proc/self/fd");
  t.one("process_open_fds", "gauge", "Open file descriptors.", fds == 0 ? 0 : fds - 1);  // without the one of the look itself
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  t.one("process_max_fds", "gauge", "Limit on open file descriptors.", std::uint64_t{files.rlim_cur});
  t.one("process_threads", "gauge", "Threads.", entries("/proc/self/task"));
  t.one("process_start_time_seconds", "gauge", "Start, in seconds since 1970.", static_cast<double>(process.start_wall) / 1e9);
}

template <class F>
std::uint64_t sum(const std::vector<WorkerSample>& workers, F&& f) {
  std::uint64_t total = 0;
  for (const WorkerSample& w : workers) total += f(w);
  return total;
}

void labelled(Text& t, const std::vector<WorkerSample>& workers) {
  t.family("twp_responses_total", "counter", "Responses sent to clients by class; none: the client got no status.");
  constexpr std::string_view kClasses[] = {"none", "1xx", "2xx", "3xx", "4xx", "5xx"};
  for (std::size_t i = 0; i < std::size(kClasses); ++i)
    t.sample("class=\"" + std::string(kClasses[i]) + '"', sum(workers, [i](const auto& w) { return w.counters.responses[i]; }));
  t.family("twp_exchange_ends_total", "counter", "How requests ended, by the word of the access log.");
  for (std::size_t i = 0; i < static_cast<std::size_t>(Fault::count_); ++i)
    t.sample("fault=\"" + prometheus_label(log_word(static_cast<Fault>(i))) + '"',
             sum(workers, [i](const auto& w) { return w.counters.faults[i]; }));
}

}  // namespace

std::string prometheus_label(std::string_view value) {
  std::string out;
  for (const char c : value) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '\\' || c == '"') out += '\\';
    out += c;
  }
  return out;
}

std::string prometheus_text(const std::vector<WorkerSample>& workers, const ProcessInfo& process) {
  Text t;
  t.family("twp_build_info", "gauge", "Version and commit of the program.");
  t.sample("version=\"" + prometheus_label(process.version) + "\",commit=\"" + prometheus_label(process.commit) + '"', std::uint64_t{1});
  t.one("twp_workers", "gauge", "Worker threads.", std::uint64_t{workers.size()});
  t.one("twp_client_connections", "gauge", "Client connections open.", sum(workers, [](const auto& w) { return w.client_connections; }));
  for (const Metric& m : kMetrics)
    t.one(m.name, m.type, m.help, sum(workers, [&m](const auto& w) { return w.counters.*m.member; }));
  labelled(t, workers);
  t.one("twp_block_bytes", "gauge", "Octets in blocks that hold data in motion.", kBlockSize * sum(workers, [](const auto& w) { return w.blocks_live; }));
  t.one("twp_block_free_bytes", "gauge", "Octets in blocks kept for later.", kBlockSize * sum(workers, [](const auto& w) { return w.blocks_free; }));
  t.one("twp_turns_total", "counter", "Turns of the event loops.", sum(workers, [](const auto& w) { return w.turns; }));
  process_metrics(t, process);
  return t.take();
}

std::string memory_json(const std::vector<WorkerSample>& workers) {
  const Memory m = process_memory();
  const auto heap = ::mallinfo2();
  std::string out = "{\"rss_bytes\":" + std::to_string(m.rss) + ",\"virtual_bytes\":" + std::to_string(m.vsize) +
                    ",\"heap_bytes\":" + std::to_string(heap.uordblks + heap.hblkhd) +
                    ",\"heap_free_bytes\":" + std::to_string(heap.fordblks) + ",\"block_size\":" + std::to_string(kBlockSize) +
                    ",\"workers\":[";
  bool first = true;
  for (const WorkerSample& w : workers) {
    if (!first) out += ',';
    first = false;
    out += "{\"blocks_live\":" + std::to_string(w.blocks_live) + ",\"blocks_free\":" + std::to_string(w.blocks_free) +
           ",\"arena_live_bytes\":" + std::to_string(w.arena_live_bytes) +
           ",\"arena_free_bytes\":" + std::to_string(w.arena_free_bytes) +
           ",\"slab_live_bytes\":" + std::to_string(w.counters.slab_live_bytes) +
           ",\"slab_free_bytes\":" + std::to_string(w.counters.slab_free_bytes) +
           ",\"client_connections\":" + std::to_string(w.client_connections) +
           ",\"exchanges\":" + std::to_string(w.counters.exchanges_active) +
           ",\"origin_connections\":" + std::to_string(w.counters.origin_connections) + "}";
  }
  return out + "]}\n";
}

}  // namespace twp
