// A Site and a stream in memory that records what is sent.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "event/worker.h"
#include "net/transport.h"
#include "origin/site.h"

namespace twp::origin {

class FakeSession final : public Session {
 public:
  Stream* open(StreamEvents&) noexcept override { return nullptr; }
  unsigned capacity() const noexcept override { return 0; }
  unsigned active() const noexcept override { return 1; }
  void drain() noexcept override { drained = true; }
  void close(Fault) noexcept override {}
  const PeerInfo& peer() const noexcept override { return info; }
  HttpVersion version() const noexcept override { return {}; }
  bool drained = false;
  PeerInfo info;
};

// Records what is sent; `leave()` plays the wire.
class FakeStream final : public Stream {
 public:
  explicit FakeStream(Site& site) : site_(site) { rearm(&site.accept(*this)); }

  void request(Method m, std::string_view path, std::string_view content = {}, std::optional<bool> expects = {}) {
    Head head = Head::request(m, "http", "a.test", path, content.empty() ? BodySize::none() : BodySize::exactly(content.size()));
    if (expects) head.fields.add(HeaderId::expect, "100-continue");
    start(std::move(head), content.empty() ? End::yes : End::no);
    if (!content.empty()) upload(content, End::yes);
  }
  void start(Head&& head, End end) { events().on_head(*this, std::move(head), end); }
  void upload(std::string_view content, End end) {
    while (content.size() > kBlockSize) {
      events().on_body(*this, Slice::copy_of(content.substr(0, kBlockSize)), End::no);
      content.remove_prefix(kBlockSize);
    }
    events().on_body(*this, Slice::copy_of(content), end);
  }
  /// What is queued leaves.
  void leave() {
    while (queued != 0 && !reset_with) {
      const std::size_t n = std::exchange(queued, 0);
      events().on_sent(*this, n);
    }
  }
  void gone(Fault f = Fault::none) { events().on_gone(*this, f); }

  Session& session() const noexcept override { return session_; }
  std::uint64_t id() const noexcept override { return 1; }

  mutable FakeSession session_;
  std::vector<std::uint16_t> interim;
  std::uint16_t status = 0;
  BodySize size;
  std::string fields, body, trailers;
  bool ended = false;
  std::uint64_t octets = 0;
  std::size_t queued = 0, credit = 0;
  std::optional<Fault> reset_with;
  bool keep_body = true;

 private:
  void do_send_head(const Head& h, End end) override {
    if (h.is_interim()) {
      interim.push_back(h.status);
      return;
    }
    status = h.status;
    size = h.body;
    for (const Field& f : h.fields) fields.append(f.name).append(": ").append(f.value).append("\n");
    ended = end == End::yes;
  }
  void do_send_body(Slice b, End end) override {
    if (keep_body) body += b.text();
    octets += b.size();
    queued += b.size();
    ended = end == End::yes;
  }
  void do_send_trailers(const HeaderBlock& t) override {
    for (const Field& f : t) trailers.append(f.name).append(": ").append(f.value).append("\n");
    ended = true;
  }
  void do_consume(std::size_t n) noexcept override { credit += n; }
  void do_reset(Fault why) override { reset_with = why; }

  Site& site_;
};

struct Fixture {
  // What the handlers have retired belongs to the site's pools: it goes before the site does.
  ~Fixture() { worker.turn(Duration::zero()); }
  Worker worker;
  Site site{worker};
  FakeStream s{site};
};

}  // namespace twp::origin
