#include "support/recorder.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/ascii.h"
#include "support/memory_transport.h"

namespace twp::test {
namespace {

void line(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append("=").append(value).append("\n");
}

std::string body_text(BodySize b) {
  if (b.is_none()) return "none";
  return b.is_exact() ? "exactly " + std::to_string(b.n) : "unknown";
}

[[noreturn]] void fatal(const char* who, const char* what) noexcept {
  std::fprintf(stderr, "%s: %s\n", who, what);
  std::abort();
}

}  // namespace

std::string describe(const HeaderBlock& fields, bool spelling) {
  std::string out;
  for (const Field& f : fields)
    out.append(spelling ? std::string(f.name) : lower(f.name)).append(": ").append(f.value).append("\n");
  return out;
}

std::string describe(const Head& head, bool spelling) {
  std::string out;
  if (head.is_request()) {
    line(out, "method", head.method_name);
    line(out, "scheme", head.scheme);
    line(out, "authority", head.authority);
    line(out, "path", head.path);
    line(out, "protocol", head.protocol);
  } else {
    line(out, head.is_interim() ? "interim" : "status", std::to_string(head.status));
    if (spelling) line(out, "reason", head.reason);
  }
  line(out, "body", body_text(head.body));
  return out + describe(head.fields, spelling);
}

Recorder::~Recorder() = default;

void Recorder::broken(const char* what) const noexcept {
  std::fprintf(stderr, "recorder: %s\n%s", what, transcript().c_str());
  std::abort();
}

void Recorder::enter(Stream& s, const char* what) noexcept {
  ++activity();
  if (gone) broken(what);
  if (stream == nullptr) stream = &s;
  if (stream != &s) broken("an event of another stream");
}

void Recorder::finish_body() {
  ended = true;
  log_.push_back("end\n");
}

std::string Recorder::transcript() const {
  std::string out;
  for (const std::string& l : log_) out += l;
  out += "body " + std::to_string(body.size()) + " octets: " + body + "\n";
  return out;
}

void Recorder::on_head(Stream& s, Head&& h, End end) noexcept {
  enter(s, "on_head after on_gone");
  if (head) broken("on_head after the final head");
  if (h.is_interim()) {
    if (end == End::yes) broken("an interim head that ends the message");
    log_.push_back(describe(h, true));
    interims.push_back(std::move(h));
    if (on_interim) on_interim(*this);
    return;
  }
  log_.push_back(describe(h, true));
  head = std::move(h);
  if (end == End::yes) finish_body();
  if (on_request) on_request(*this);
  if (end == End::yes && on_end) on_end(*this);
}

void Recorder::on_body(Stream& s, Slice b, End end) noexcept {
  enter(s, "on_body after on_gone");
  if (!head) broken("on_body before on_head");
  if (ended) broken("on_body after the end of the message");
  if (b.empty() && end == End::no) broken("on_body with nothing");
  unconsumed += b.size();
  max_unconsumed = std::max(max_unconsumed, unconsumed);
  body.append(b.text().substr(0, keep_body > body.size() ? keep_body - body.size() : 0));
  if (end == End::yes) finish_body();
  if (consume) give_credit(b.size());
  if (on_data) on_data(*this);
  if (end == End::yes && on_end) on_end(*this);
}

void Recorder::on_trailers(Stream& s, HeaderBlock&& t) noexcept {
  enter(s, "on_trailers after on_gone");
  if (!head || ended) broken("on_trailers out of order");
  log_.push_back("trailers\n" + describe(t, true));
  trailers = std::move(t);
  finish_body();
  if (on_end) on_end(*this);
}

void Recorder::on_sent(Stream& s, std::size_t n) noexcept {
  enter(s, "on_sent after on_gone");
  if (inside_ != 0) broken("on_sent from inside a call into the stream");
  sent += n;
  if (on_octets_sent) on_octets_sent(*this, n);
}

void Recorder::on_gone(Stream& s, Fault why) noexcept {
  enter(s, "on_gone twice");
  if (inside_ != 0) broken("on_gone from inside a call into the stream");
  gone = true;
  fault = why;
  stream = nullptr;
  log_.push_back("gone " + std::string(log_word(why)) + "\n");
  if (on_over) on_over(*this);
}

void Recorder::send_head(const Head& h, End end) {
  if (stream == nullptr) return;
  const Call call(*this);
  stream->send_head(h, end);
}

void Recorder::send_body(std::string_view octets, End end) {
  do {
    if (stream == nullptr) return;
    const Call call(*this);
    const std::size_t n = std::min(octets.size(), kBlockSize);
    const bool last = n == octets.size();
    stream->send_body(Slice::copy_of(octets.substr(0, n)), last ? end : End::no);
    octets.remove_prefix(n);
  } while (!octets.empty());
}

void Recorder::send_trailers(const HeaderBlock& fields) {
  if (stream == nullptr) return;
  const Call call(*this);
  stream->send_trailers(fields);
}

void Recorder::reset(Fault why) {
  if (stream == nullptr) return;
  const Call call(*this);
  stream->reset(why);
}

void Recorder::give_credit(std::size_t n) {
  unconsumed -= n;
  if (stream == nullptr) return;
  const Call call(*this);
  stream->consume(n);
}

void Recorder::respond(std::uint16_t status, std::string_view text) {
  send_head(Head::response(status, BodySize::exactly(text.size())), text.empty() ? End::yes : End::no);
  if (!text.empty()) send_body(text, End::yes);
}

StreamEvents& RecordingAcceptor::accept(Stream& s) noexcept {
  auto& r = *streams.emplace_back(std::make_unique<Recorder>());
  r.stream = &s;
  if (setup) setup(r);
  return r;
}

std::string RecordingAcceptor::transcript() const {
  std::string out;
  for (const auto& s : streams) out += s->transcript();
  for (const Fault f : rejects) out += "rejected " + std::string(log_word(f)) + "\n";
  return out;
}

Session* RecordingOwner::hold(std::unique_ptr<Session> session) {
  session_ = std::move(session);
  return session_.get();
}

void RecordingOwner::on_capacity(Session& s) noexcept {
  if (gone || &s != session_.get()) fatal("owner", "on_capacity of a session that is gone");
  ++capacity_calls;
  if (on_capacity_hook) on_capacity_hook();
}

void RecordingOwner::on_session_gone(Session& s, Fault why) noexcept {
  ++activity();
  if (gone || &s != session_.get()) fatal("owner", "on_session_gone twice");
  if (s.active() != 0) fatal("owner", "on_session_gone while a stream is open");
  gone = true;
  fault = why;
  worker_.retire(std::move(session_));
}

}  // namespace twp::test
