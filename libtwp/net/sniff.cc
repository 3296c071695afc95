#include "net/sniff.h"

#include <algorithm>
#include <utility>

namespace twp {
namespace {

constexpr std::size_t kMinRead = 4096;  // free octets in the inbox block that are worth a read

/// As sniff(), for octets that follow `before` octets of the preface.
Sniffed sniff_after(std::size_t before, std::string_view octets) noexcept {
  const std::string_view rest = kHttp2Preface.substr(before, kHttp2PrefaceDecides - before);
  const std::size_t n = std::min(rest.size(), octets.size());
  if (octets.substr(0, n) != rest.substr(0, n)) return Sniffed::http1;
  return n == rest.size() ? Sniffed::http2 : Sniffed::undecided;
}

}  // namespace

Sniffed sniff(std::string_view octets) noexcept { return sniff_after(0, octets); }

Sniffer::Sniffer(Worker& worker, std::unique_ptr<Transport> transport, SniffHandler& handler,
                 SniffTimes times) noexcept
    : worker_(worker), transport_(std::move(transport)), handler_(handler), times_(times) {
  // A new descriptor's first edge tells of what has come already: asking now would be one read too many.
  transport_->set_handler(this);
  worker_.arm(*this, times_.idle);
}

void Sniffer::on_ready(Transport&, bool readable, bool) noexcept {
  if (over_ || !readable) return;
  for (;;) {
    Block* const b = BlockPool::local().inbox(kMinRead);
    const IoResult r = transport_->read({b->data + b->used, b->size - b->used});
    if (r.status == IoStatus::again) return;
    if (r.status != IoStatus::ok) return end();
    Slice s(BlockPool::retain(b), b->used, static_cast<std::uint32_t>(r.n));
    const Sniffed which = sniff_after(matched_, s.text());
    if (which != Sniffed::undecided) {
      b->used += static_cast<std::uint32_t>(r.n);
      return decide(which, std::move(s));
    }
    // The octets are those of the preface: their number is all there is to keep.
    if (matched_ == 0) worker_.arm(*this, times_.head);
    matched_ += r.n;
    // More must come: worth one more look, for a reset right behind octets makes no edge of its own.
  }
}

void Sniffer::decide(Sniffed which, Slice last) noexcept {
  over_ = true;
  cancel();
  Chain first;
  if (matched_ != 0) first.append_copy(kHttp2Preface.substr(0, matched_));
  first.append(std::move(last));
  transport_->set_handler(nullptr);
  handler_.on_sniffed(*this, which, std::move(first));
}

void Sniffer::drain(Duration grace) noexcept {
  if (over_ || matched_ != 0) return;
  worker_.arm(*this, grace);
}

void Sniffer::close(Fault why) noexcept {
  if (std::exchange(over_, true)) return;
  cancel();
  transport_->close(why);
}

void Sniffer::end() noexcept {
  if (over_) return;
  close(Fault::none);
  handler_.on_sniff_ended(*this);
}

}  // namespace twp
