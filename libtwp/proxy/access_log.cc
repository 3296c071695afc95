#include "proxy/access_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>

#include "base/ascii.h"
#include "base/log.h"
#include "base/write_all.h"

namespace twp {
namespace {

// One JSON object, written member by member behind what `out` holds.
class Line {
 public:
  explicit Line(std::string& out) : out_(out) { out_ += '{'; }
  ~Line() { out_ += "}\n"; }
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  void text(std::string_view name, std::string_view value) {
    key(name);
    out_ += '"';
    append_json_escaped(out_, value);
    out_ += '"';
  }
  void text_if(std::string_view name, std::string_view value) {
    if (!value.empty()) text(name, value);
  }
  void number(std::string_view name, std::uint64_t value) {
    key(name);
    char digits[20];
    out_.append(digits, write_decimal(digits, value));
  }
  void flag_if(std::string_view name, bool value) {
    if (!value) return;
    key(name);
    out_ += "true";
  }

 private:
  void key(std::string_view name) {
    if (out_.back() != '{') out_ += ',';
    out_ += '"';
    out_ += name;
    out_ += "\":";
  }
  std::string& out_;
};

std::string_view version_text(HttpVersion v) noexcept {
  if (v.major == 3) return "HTTP/3";
  if (v.major == 2) return "HTTP/2";
  return v.minor == 0 ? "HTTP/1.0" : "HTTP/1.1";
}

std::uint64_t microseconds(Instant from, Instant to) noexcept { return to > from ? (to - from) / 1000 : 0; }

void write_request(Line& line, const ExchangeRecord& r) {
  if (r.client != nullptr) line.text("client", r.client->text());
  line.text("method", r.method);
  line.text("scheme", r.scheme);
  line.text("host", r.authority);
  line.text("path", r.path);
  line.text("version", version_text(r.client_version));
}

void write_times(Line& line, const ExchangeRecord& r) {
  line.number("duration_us", microseconds(r.started, r.ended));
  if (r.request_sent == kNever) return;
  line.number("wait_us", microseconds(r.started, r.request_sent));
  if (r.response != kNever) line.number("origin_us", microseconds(r.request_sent, r.response));
}

void write_origin(Line& line, const ExchangeRecord& r) {
  line.text_if("cluster", r.cluster);
  line.text_if("origin", r.origin);
  if (r.origin_address != nullptr && r.origin_address->valid()) line.text("origin_address", r.origin_address->text());
  line.flag_if("reused", r.reused);
  line.flag_if("replayed", r.replayed);
}

void write_tls(Line& line, std::string_view version, std::string_view cipher, std::string_view sni,
               std::string_view subject) {
  line.text("tls", version);
  line.text("cipher", cipher);
  line.text_if("sni", sni);
  line.text_if("client_subject", subject);
}

}  // namespace

Result<std::unique_ptr<AccessLog>> AccessLog::open(Worker& worker, const std::string& file) {
  std::unique_ptr<AccessLog> log(new AccessLog(worker));
  if (auto opened = log->reopen(file); !opened) return std::unexpected(opened.error());
  return log;
}

AccessLog::~AccessLog() { close(); }

void AccessLog::close() noexcept {
  flush();
  if (owns_) ::close(fd_);
  fd_ = -1;
  owns_ = false;
}

Result<void> AccessLog::reopen(const std::string& file) {
  int fd = -1;
  bool owns = false;
  if (file == "-") {
    fd = STDOUT_FILENO;
  } else if (!file.empty()) {
    fd = ::open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0640);
    if (fd < 0) return fail(Fault::bad_config, "cannot open '" + file + "' for the access log: " + errno_text(errno));
    owns = true;
  }
  close();
  fd_ = fd;
  owns_ = owns;
  struct stat st {};
  regular_ = owns && ::fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
  return {};
}

void AccessLog::flush() noexcept {
  if (buffer_.empty()) return;
  int err = 0;
  if (regular_) {
    err = write_all(fd_, buffer_);
  } else if (fd_ >= 0) {
    // A pipe or terminal takes a long write in pieces, and other workers write to it too: the lock keeps lines whole.
    static std::mutex whole;
    const std::lock_guard lock(whole);
    err = write_all(fd_, buffer_);
  }
  if (err != 0) log_limited(LogLevel::error, "access log: " + errno_text(err) + "; lines are lost");
  buffer_.clear();
}

void AccessLog::written() noexcept {
  if (buffer_.size() >= kFlushAt)
    flush();
  else
    worker_.schedule(Phase::flush, *this);
}

void AccessLog::on_exchange_done(const ExchangeRecord& r) noexcept {
  if (fd_ < 0) return;
  {
    Line line(buffer_);
    line.text("time", iso8601(r.wall));
    write_request(line, r);
    line.number("status", r.status);
    line.text("fault", log_word(r.fault));
    line.text_if("detail", r.detail);
    line.flag_if("generated", r.generated);
    line.number("request_octets", r.request_octets);
    line.number("response_octets", r.response_octets);
    write_times(line, r);
    write_origin(line, r);
    if (r.tls) write_tls(line, r.tls_version, r.cipher, r.sni, r.client_subject);
    line.text_if("protocol", r.protocol);
    line.flag_if("tunnel", r.tunnel);
    line.text_if("user_agent", r.user_agent);
    line.text_if("referer", r.referer);
  }
  written();
}

void AccessLog::on_rejected(const PeerInfo& client, Fault why) noexcept {
  if (fd_ < 0) return;
  {
    Line line(buffer_);
    line.text("time", iso8601(worker_.wall()));
    line.text("client", client.remote.text());
    line.number("status", info(why).http_status);
    line.text("fault", log_word(why));
    line.flag_if("generated", true);
    if (client.tls) write_tls(line, client.tls_version, client.cipher, client.sni, client.subject);
  }
  written();
}

}  // namespace twp
