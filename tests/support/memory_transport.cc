#include "support/memory_transport.h"

#include <algorithm>
#include <cstring>
#include <random>

namespace twp::test {

Chop whole() {
  return [](std::size_t n) { return n; };
}
Chop every_octet() { return pieces_of(1); }
Chop pieces_of(std::size_t n) {
  return [n](std::size_t available) { return std::min(n, available); };
}
Chop random_pieces(std::uint32_t seed) {
  return [rng = std::minstd_rand(seed)](std::size_t available) mutable {
    // Small pieces are the interesting ones; now and then everything.
    const auto draw = rng();
    return draw % 7 == 0 ? available : 1 + rng() % std::min<std::size_t>(available, draw % 2 == 0 ? 4 : 700);
  };
}

std::uint64_t& activity() noexcept {
  static thread_local std::uint64_t count = 0;
  return count;
}

std::pair<MemoryTransport::Ptr, MemoryTransport::Ptr> MemoryTransport::make_pair(Worker& worker) {
  auto ab = std::make_shared<Pipe>();
  auto ba = std::make_shared<Pipe>();
  return {Ptr(new MemoryTransport(worker, ba, ab)), Ptr(new MemoryTransport(worker, ab, ba))};
}

MemoryTransport::MemoryTransport(Worker& worker, std::shared_ptr<Pipe> in, std::shared_ptr<Pipe> out)
    : worker_(worker), in_(std::move(in)), out_(std::move(out)), chop_(whole()) {
  in_->reader = this;
  out_->writer = this;
  peer_.local = *Address::parse("127.0.0.1", 1);
  peer_.remote = *Address::parse("127.0.0.1", 2);
}

MemoryTransport::~MemoryTransport() { close(Fault::none); }

void MemoryTransport::set_handler(TransportHandler* handler) noexcept {
  handler_ = handler;
  // As a poll registration would: a new one reports what is there already.
  if (handler != nullptr && (in_->size() != 0 || in_->eof || in_->reset)) edge(true, false);
}

void MemoryTransport::set_write_space(std::size_t octets) noexcept {
  out_->space = octets;
  edge(false, true);
}

std::size_t MemoryTransport::unread() const noexcept { return in_->size(); }

void MemoryTransport::edge(bool readable, bool writable) noexcept {
  if (closed_) return;
  edge_read_ |= readable;
  edge_write_ |= writable;
  worker_.schedule(Phase::origin, *this);
}

void MemoryTransport::run() noexcept {
  const bool r = std::exchange(edge_read_, false);
  const bool w = std::exchange(edge_write_, false);
  if (closed_) return;
  readable_ |= r;
  writable_ |= w;
  ++activity();
  if (handler_ != nullptr) handler_->on_ready(*this, r, w);
}

IoResult MemoryTransport::read(std::span<std::byte> into) noexcept {
  if (into.empty()) return failed_ ? IoResult{IoStatus::error, 0, Fault::peer_reset} : IoResult{};
  ++reads_;
  if (fail_read_ != 0 && --fail_read_ == 0) failed_ = true;
  if (failed_) return {IoStatus::error, 0, Fault::peer_reset};
  if (closed_) return {IoStatus::error, 0, Fault::io_error};
  if (!readable_) return {};
  if (const std::size_t available = in_->size(); available != 0) {
    const std::size_t n = std::min(into.size(), std::clamp<std::size_t>(chop_(available), 1, available));
    std::memcpy(into.data(), in_->data.data() + in_->at, n);
    in_->at += n;
    if (in_->at == in_->data.size()) {
      in_->data.clear();
      in_->at = 0;
    } else if (in_->at > 65536 && in_->at * 2 > in_->data.size()) {
      in_->data.erase(0, in_->at);
      in_->at = 0;
    }
    ++activity();
    if (in_->writer != nullptr) in_->writer->edge(false, true);
    if (n < into.size()) {
      // Short: the "socket" is empty, unless its end is known already.
      if (in_->size() != 0) {
        readable_ = false;
        edge(true, false);
      } else if (!in_->eof && !in_->reset) {
        readable_ = false;
      }
    }
    return {IoStatus::ok, n, Fault::none};
  }
  readable_ = false;
  if (in_->reset) {
    failed_ = true;
    return {IoStatus::error, 0, Fault::peer_reset};
  }
  if (in_->eof) return {IoStatus::eof, 0, Fault::none};
  return {};
}

IoResult MemoryTransport::write(Chain& from) noexcept {
  ++writes_;
  if (fail_write_ != 0 && --fail_write_ == 0) failed_ = true;
  if (failed_ || closed_ || in_->reset || out_->reader == nullptr) return {IoStatus::error, 0, Fault::peer_reset};
  std::size_t total = 0;
  while (writable_ && !from.empty()) {
    const std::size_t space = out_->space > out_->size() ? out_->space - out_->size() : 0;
    const auto b = from.front();
    const std::size_t n = std::min(space, b.size());
    out_->data.append(reinterpret_cast<const char*>(b.data()), n);
    if (n < b.size()) writable_ = false;
    from.consume(n);
    total += n;
  }
  if (total != 0) {
    ++activity();
    out_->reader->edge(true, false);
  }
  return {total != 0 || from.empty() ? IoStatus::ok : IoStatus::again, total, Fault::none};
}

void MemoryTransport::shutdown_write() noexcept {
  if (closed_ || out_->eof) return;
  out_->eof = true;
  if (out_->reader != nullptr) out_->reader->edge(true, false);
}

void MemoryTransport::close(Fault why) noexcept {
  if (std::exchange(closed_, true)) return;
  ++activity();
  why_ = why;
  static_cast<Task&>(*this).unlink();
  in_->reader = nullptr;
  out_->writer = nullptr;
  if (in_->size() != 0 && why == Fault::none) {
    // What a kernel does to a close with unread input: RST, which may overtake what was sent.
    out_->reset = true;
    out_->data.clear();
    out_->at = 0;
  } else if (why != Fault::none) {
    out_->reset = true;
  } else {
    out_->eof = true;
  }
  if (out_->reader != nullptr) out_->reader->edge(true, true);
}

RawPeer::RawPeer(std::unique_ptr<Transport> transport) : transport_(std::move(transport)) { transport_->set_handler(this); }

void RawPeer::send(std::string_view octets) {
  out_.append_copy(octets);
  write();
}

void RawPeer::finish() {
  finish_ = true;
  write();
}

void RawPeer::resume() {
  paused_ = false;
  read();
}

void RawPeer::on_ready(Transport&, bool readable, bool writable) noexcept {
  if (readable && !paused_) read();
  if (writable) write();
}

void RawPeer::read() noexcept {
  std::byte buf[16384];
  bool news = false;
  while (!over()) {
    const IoResult r = transport_->read(buf);
    if (r.status == IoStatus::again) break;
    news = true;
    if (r.status == IoStatus::eof) eof_ = true;
    if (r.status == IoStatus::error) reset_ = true;
    if (r.status == IoStatus::ok) got_.append(reinterpret_cast<const char*>(buf), r.n);
  }
  if (news && on_input) on_input(*this);
}

void RawPeer::write() noexcept {
  if (!out_.empty() && transport_->write(out_).status == IoStatus::error) out_.clear();
  if (out_.empty() && std::exchange(finish_, false)) transport_->shutdown_write();
}

bool run_until(Worker& worker, const std::function<bool()>& done, Duration limit) {
  const Instant end = monotonic_now() + static_cast<Instant>(limit.count());
  while (!done()) {
    if (monotonic_now() >= end) return false;
    worker.turn(std::chrono::milliseconds(5));
  }
  return true;
}

void run_quiet(Worker& worker) {
  // An event becomes work within two turns: an edge, a read or flush task, retirement.
  for (unsigned quiet = 0; quiet < 4;) {
    const std::uint64_t before = activity();
    worker.turn(Duration::zero());
    quiet = activity() == before && !worker.work_waiting() ? quiet + 1 : 0;
  }
}

}  // namespace twp::test
