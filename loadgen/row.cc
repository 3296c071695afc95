// Rows, CSV and JSON of steps (declared in step.h).
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "base/ascii.h"
#include "base/write_all.h"
#include "loadgen/step.h"
#include "loadgen/units.h"

namespace twp::load {
namespace {

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "";
}

// Closes on every way out.
class File {
 public:
  explicit File(int fd) noexcept : fd_(fd) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  int fd() const noexcept { return fd_; }

 private:
  int fd_;
};

Cell text(std::string v) { return {std::move(v), false}; }
Cell number(std::uint64_t v) { return {std::to_string(v), true}; }
Cell number(double v, int digits) { return {fixed(v, digits), true}; }
Cell none() { return {{}, true}; }

std::string csv_field(const std::string& v) {
  if (v.find_first_of(",\"\r\n") == std::string::npos) return v;
  std::string out = "\"";
  for (const char c : v) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

void add_string(std::string& out, std::string_view key, std::string_view value) {
  out += '"';
  append_json_escaped(out, key);
  out += "\":\"";
  append_json_escaped(out, value);
  out += '"';
}

void add_number(std::string& out, std::string_view key, const std::string& value) {
  out += ",\"";
  append_json_escaped(out, key);
  out.append("\":").append(value);
}

void add_histogram(std::string& out, std::string_view key, const Histogram& h) {
  out += ",\"";
  out.append(key).append("\":{\"count\":").append(std::to_string(h.count()));
  add_number(out, "min_us", std::to_string(h.min_us()));
  add_number(out, "mean_us", fixed(h.mean_us(), 1));
  for (const auto& [name, p] : {std::pair{"p50_us", 50.0}, {"p90_us", 90.0}, {"p99_us", 99.0}, {"p999_us", 99.9}})
    add_number(out, name, std::to_string(h.percentile_us(p)));
  add_number(out, "max_us", std::to_string(h.max_us()));
  out += '}';
}

std::string json_detail(const Plan& plan, const Step& s) {
  const Counters& c = s.counters;
  std::string out = "{";
  add_string(out, "url", plan.url.text() + plan.url.target);
  add_number(out, "rate", fixed(plan.rate, 3));
  add_number(out, "threads", std::to_string(s.threads));
  add_number(out, "busiest_thread_pct", fixed(s.busiest_thread * 100, 1));
  add_number(out, "generator_saturated", s.saturated() ? "true" : "false");
  add_number(out, "interrupted", s.interrupted ? "true" : "false");
  add_number(out, "unfinished", std::to_string(c.unfinished));
  add_number(out, "early_responses", std::to_string(c.early));
  add_number(out, "connect_retries", std::to_string(c.connect_retries));
  out += ",\"errors_by_kind\":{";
  for (std::size_t i = 0; i < c.failures.size(); ++i)
    // append() and not "literal" + string: inlined, g++ 12 takes the latter for an overflow (-Wstringop-overflow).
    out.append(i == 0 ? "\"" : ",\"").append(failure_name(static_cast<Failure>(i))).append("\":").append(std::to_string(c.failures[i]));
  out += "},";
  add_string(out, "first_error", c.first_error);
  add_histogram(out, "latency", c.latency);
  if (plan.open_loop()) add_histogram(out, "service", c.service);
  add_histogram(out, "connect", c.connecting);
  out += ",\"watched\":{";
  for (const auto& u : s.usage) {
    if (&u != s.usage.data()) out += ',';
    out += '"';
    append_json_escaped(out, u.name);
    out.append("\":{\"cpu_us_per_req\":").append(fixed(s.per_request_us(u.cpu_ns), 3));
    add_number(out, "cpu_avg_pct", fixed(s.duration_s > 0 ? static_cast<double>(u.cpu_ns) / 1e7 / s.duration_s : 0, 1));
    add_number(out, "rss_peak_bytes", std::to_string(u.rss_peak_bytes));
    add_number(out, "lost", u.lost ? "true" : "false");
    out += '}';
  }
  return out + "}}";
}

Result<void> check_csv_header(int fd, const std::string& path) {
  const std::string want = csv_header();
  std::string have(want.size(), '\0');
  const ssize_t n = ::pread(fd, have.data(), have.size(), 0);
  if (n < 0) return fail(Fault::io_error, "cannot read " + path + ": " + errno_text(errno));
  if (static_cast<std::size_t>(n) != want.size() || have != want)
    return fail(Fault::bad_config, path + " has other columns than this version writes: choose another file for --csv");
  return {};
}

}  // namespace

Row make_row(const Plan& plan, const Step& s) {
  const Counters& c = s.counters;
  const Sampler::Usage* proxy = s.watched("proxy");
  const Sampler::Usage* origin = s.watched("origin");
  const auto percentile = [&](double p) { return number(c.latency.percentile_us(p)); };
  Row row{
      text(plan.run_id), text(plan.commit), text(s.utc), text(host_name()), number(std::thread::hardware_concurrency()),
      text(plan.arm), text(plan.mode), text(plan.client), text(plan.origin), text(plan.product), text(plan.version),
      number(plan.repeat), number(s.concurrency), number(s.connections), number(s.warmup_s, 3), number(s.duration_s, 3),
      number(c.requests), number(c.errors()), number(s.error_rate(), 6), number(s.rps(), 1),
      number(s.goodput_mib_s(), 3), percentile(50), percentile(90), percentile(99), percentile(99.9),
      number(c.latency.max_us()), number(plan.slo.p99_us), {s.slo_met(plan.slo) ? "true" : "false", true}, none(),
      none(), none(), none(), number(s.per_request_us(s.own_cpu_ns), 3), none()};
  if (proxy != nullptr) {
    row[28] = number(proxy->rss_peak_bytes);
    row[29] = number(s.duration_s > 0 ? static_cast<double>(proxy->cpu_ns) / 1e7 / s.duration_s : 0, 1);
    row[30] = number(s.per_request_us(proxy->cpu_ns), 3);
    if (plan.limit_us > 0) row[33] = number(s.per_request_us(proxy->cpu_ns) / plan.limit_us, 3);
  }
  if (origin != nullptr) row[31] = number(s.per_request_us(origin->cpu_ns), 3);
  return row;
}

std::string csv_header() {
  std::string out;
  for (const std::string_view name : kColumns) out.append(out.empty() ? "" : ",").append(name);
  return out + "\n";
}

std::string csv_line(const Row& row) {
  std::string out;
  for (std::size_t i = 0; i < row.size(); ++i) out.append(i == 0 ? "" : ",").append(csv_field(row[i].text));
  return out + "\n";
}

Result<void> append_csv(const std::string& path, const std::vector<Row>& rows) {
  const File file(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  struct stat st {};
  if (file.fd() < 0 || ::fstat(file.fd(), &st) != 0)
    return fail(Fault::io_error, "cannot write " + path + ": " + errno_text(errno));
  ::flock(file.fd(), LOCK_EX);  // several runs may append to one file
  if (::fstat(file.fd(), &st) == 0 && st.st_size != 0)
    if (auto ok = check_csv_header(file.fd(), path); !ok) return ok;
  std::string out = st.st_size == 0 ? csv_header() : std::string();
  for (const Row& row : rows) out += csv_line(row);
  if (const int err = write_all(file.fd(), out); err != 0)
    return fail(Fault::io_error, "cannot write " + path + ": " + errno_text(err));
  return {};
}

std::string json_step(const Plan& plan, const Step& step) {
  const Row row = make_row(plan, step);
  std::string out = "{";
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (i != 0) out += ',';
    if (!row[i].number) {
      add_string(out, kColumns[i], row[i].text);
      continue;
    }
    out.append("\"").append(kColumns[i]).append("\":").append(row[i].text.empty() ? "null" : row[i].text);
  }
  return out + ",\"detail\":" + json_detail(plan, step) + "}";
}

std::string json_ramp(const Plan& plan, const std::vector<Step>& steps) {
  std::string out = "{\"steps\":[";
  for (const Step& s : steps) out.append(&s == steps.data() ? "" : ",").append(json_step(plan, s));
  const Step* held = sustained(plan, steps);
  const Step* top = peak(steps);
  out.append("],\"sustain_concurrency\":").append(held == nullptr ? std::string("null") : std::to_string(held->concurrency));
  out.append(",\"peak_rps\":").append(top == nullptr ? std::string("null") : fixed(top->rps(), 1)).append("}");
  return out;
}

}  // namespace twp::load
