#include "tls/tls_transport.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/log.h"
#include "tls/handshake.h"
#include "tls/transport_impl.h"

namespace twp {
namespace tls_detail {
namespace {

constexpr std::size_t kRecord = SSL3_RT_MAX_PLAIN_LENGTH;  // 16384
// Plaintext is taken until this much ciphertext waits: enough to keep a socket busy, little enough to be bounded.
constexpr std::size_t kMaxQueued = 128 * 1024;
// Reads of the lower transport without one octet of plaintext (tickets, key updates) before others get a turn.
constexpr unsigned kMaxDryFills = 8;

thread_local std::array<std::byte, kRecord> gather;

}  // namespace

/// The receive buffer of a thread and the connection whose unread octets are in it.
struct Transport::Receive {
  std::array<std::byte, 64 * 1024> octets;
  Transport* owner;

  static Receive& local() noexcept {
    static thread_local Receive r;  // zero-initialised
    return r;
  }
};

/// OpenSSL's view of the transport: reads take from what has been received, writes append to `out_`.
struct BioGlue {
  static Transport& self(BIO* bio) noexcept { return *static_cast<Transport*>(BIO_get_data(bio)); }

  static int read(BIO* bio, char* into, std::size_t n, std::size_t* done) noexcept {
    BIO_clear_retry_flags(bio);
    *done = self(bio).take(std::as_writable_bytes(std::span(into, n)));
    if (*done != 0) return 1;
    BIO_set_retry_read(bio);
    return 0;
  }
  static int write(BIO* bio, const char* from, std::size_t n, std::size_t* done) noexcept {
    BIO_clear_retry_flags(bio);
    self(bio).out_.append_copy(std::string_view(from, n));
    *done = n;
    return 1;
  }
  static long ctrl(BIO*, int command, long, void*) noexcept { return command == BIO_CTRL_FLUSH ? 1 : 0; }

  static BIO_METHOD* method() noexcept {
    static BIO_METHOD* const m = [] {
      BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "twp");
      if (made == nullptr) return made;
      BIO_meth_set_read_ex(made, read);
      BIO_meth_set_write_ex(made, write);
      BIO_meth_set_ctrl(made, ctrl);
      return made;
    }();
    return m;
  }
};

Transport::Transport(Worker& worker, std::unique_ptr<twp::Transport> lower, Context& context) noexcept
    : worker_(worker), context_(context), lower_(std::move(lower)), ssl_(SSL_new(context.native())) {
  peer_ = lower_->peer();
  peer_.tls = true;
  BIO* bio = ssl_ == nullptr ? nullptr : BIO_new(BioGlue::method());
  if (bio == nullptr) {
    ssl_.reset();  // run() reports it
  } else {
    BIO_set_data(bio, this);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl_.get(), bio, bio);
    set_connection(ssl_.get(), &connection_);
  }
  lower_->set_handler(this);
  // The lower transport may be open already and have no further edge to tell so.
  worker_.schedule(Phase::client, *this);
}

Transport::~Transport() {
  close(Fault::none);
  if (ssl_ == nullptr) return;
  set_connection(ssl_.get(), nullptr);
  // Without this SSL_free() takes an unclosed connection for a broken one and spoils its session for resumption.
  SSL_set_shutdown(ssl_.get(), SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
}

void Transport::start_server(Duration handshake_timeout) noexcept {
  server_ = true;
  if (ssl_ != nullptr) SSL_set_accept_state(ssl_.get());
  worker_.arm(*this, handshake_timeout);
}

void Transport::start_client(const std::string& host, const std::string& verify_name,
                             const std::string& session_key) noexcept {
  if (ssl_ == nullptr) return;
  SSL_set_connect_state(ssl_.get());
  expected_ = expect_server(ssl_.get(), context_, connection_, {host, verify_name, session_key}, peer_);
}

void Transport::set_handler(TransportHandler* handler) noexcept {
  handler_ = handler;
  // What came with the handshake or was left by the previous handler makes no further edge.
  if (handler != nullptr && state_ == State::open && !drained()) worker_.schedule(Phase::client, *this);
}

void Transport::run() noexcept {
  if (state_ == State::waiting) {
    // Asks a transport without asking it anything: an open one takes "nothing" at once.
    Chain nothing;
    const IoResult r = lower_->write(nothing);
    if (r.status == IoStatus::ok) begin();
    if (r.status == IoStatus::error) fail_open(r.fault, "connection lost");
  } else if (state_ == State::open && handler_ != nullptr && !drained()) {
    handler_->on_ready(*this, true, false);
  }
}

void Transport::on_open(twp::Transport&) noexcept {
  if (state_ == State::waiting) begin();
}

void Transport::begin() noexcept {
  peer_.local = lower_->peer().local;
  peer_.remote = lower_->peer().remote;
  state_ = State::handshaking;
  if (ssl_ == nullptr) return fail_open(Fault::out_of_memory, "cannot make a TLS connection");
  handshake();
}

void Transport::on_open_failed(twp::Transport&, Fault fault, std::string_view detail) noexcept {
  if (state_ != State::waiting && state_ != State::handshaking) return;
  state_ = State::failed;
  fault_ = write_fault_ = fault;
  cancel();
  if (handler_ != nullptr) handler_->on_open_failed(*this, fault, detail);
}

void Transport::on_ready(twp::Transport&, bool readable, bool writable) noexcept {
  switch (state_) {
    case State::waiting: return begin();
    case State::handshaking: return handshake();
    case State::open: break;
    default: return;
  }
  if (!out_.empty()) flush();
  if (handler_ == nullptr) return;
  if (readable || writable) handler_->on_ready(*this, readable, writable && out_.size() < kMaxQueued);
}

void Transport::on_timer() noexcept { fail_open(Fault::tls_handshake, "handshake took too long"); }

void Transport::handshake() noexcept {
  for (;;) {
    const int rc = SSL_do_handshake(ssl_.get());
    if (rc == 1) return established();
    if (SSL_get_error(ssl_.get(), rc) != SSL_ERROR_WANT_READ) return handshake_failed();
    flush();
    const IoResult r = fill();
    if (r.status == IoStatus::again) return;
    // A client that leaves has not been refused anything.
    if (r.status == IoStatus::eof)
      return fail_open(server_ ? Fault::client_closed : Fault::tls_handshake, "connection closed during the handshake");
    if (r.status == IoStatus::error)
      return fail_open(server_ ? Fault::client_reset : Fault::tls_handshake, "connection lost during the handshake");
  }
}

void Transport::established() noexcept {
  cancel();
  state_ = State::open;
  note_peer(ssl_.get(), connection_, server_, context_.verifies(), peer_);
  flush();
  if (handler_ == nullptr) return;
  handler_->on_open(*this);
  if (state_ == State::open && !drained()) worker_.schedule(Phase::client, *this);
}

void Transport::handshake_failed() noexcept {
  const Failure f = explain_failure(ssl_.get(), connection_, server_, expected_);
  fail_open(f.fault, f.reason);
}

void Transport::fail_open(Fault fault, const std::string& reason) noexcept {
  if (state_ != State::waiting && state_ != State::handshaking) return;
  cancel();
  flush();  // the alert that says why
  state_ = State::failed;
  fault_ = write_fault_ = fault;
  if (handler_ != nullptr) handler_->on_open_failed(*this, fault, describe_peer("TLS", peer_, connection_, server_, expected_) + ": " + reason);
}

// Asks a drained lower transport too: a reset right behind octets that were not enough makes no edge of its own, and the
// lower one knows when there is nothing to learn.
IoResult Transport::fill() noexcept {
  Receive& r = Receive::local();
  if (r.owner != nullptr && r.owner != this) r.owner->stash_feed();
  r.owner = nullptr;
  const IoResult io = lower_->read(r.octets);
  if (io.status == IoStatus::ok) {
    r.owner = this;
    feed_ = std::span<const std::byte>(r.octets).first(io.n);
  }
  return io;
}

void Transport::stash_feed() noexcept {
  stash_.append_copy(feed_);
  feed_ = {};
}

std::size_t Transport::take(std::span<std::byte> into) noexcept {
  std::size_t n = 0;
  while (n < into.size() && !stash_.empty()) {
    const auto front = stash_.front();
    const std::size_t part = std::min(front.size(), into.size() - n);
    std::memcpy(into.data() + n, front.data(), part);
    stash_.consume(part);
    n += part;
  }
  const std::size_t part = std::min(feed_.size(), into.size() - n);
  if (part != 0) std::memcpy(into.data() + n, feed_.data(), part);
  feed_ = feed_.subspan(part);
  return n + part;
}

bool Transport::drained() const noexcept {
  if (state_ != State::open || eof_ || fault_ != Fault::none) return true;
  return starved() && lower_->drained();
}

IoResult Transport::read(std::span<std::byte> into) noexcept {
  if (state_ == State::waiting || state_ == State::handshaking) return {};
  if (eof_) return {IoStatus::eof, 0, Fault::none};
  if (fault_ != Fault::none) return {IoStatus::error, 0, fault_};
  if (state_ != State::open) return {IoStatus::error, 0, Fault::io_error};
  if (into.empty()) {
    const IoResult r = lower_->read(into);
    if (r.status == IoStatus::error) fault_ = r.fault;
    return r;
  }
  // A peer that makes us answer (key updates) but does not read waits until it has.
  if (out_.size() > 2 * kMaxQueued) return {};
  for (unsigned fills = 0;;) {
    if (starved()) {
      if (fills++ == kMaxDryFills) {
        worker_.schedule(Phase::client, *this);
        return {};
      }
      const IoResult r = fill();
      if (r.status == IoStatus::again) return {};
      if (r.status != IoStatus::ok) {
        // A FIN without close_notify may be an attacker's (RFC 8446 §6.1): whether it matters is HTTP's to say.
        fault_ = r.status == IoStatus::eof ? Fault::tls_truncated : r.fault;
        return {IoStatus::error, 0, fault_};
      }
    }
    std::size_t n = 0;
    const int rc = SSL_read_ex(ssl_.get(), into.data(), into.size(), &n);
    if (rc == 1) {
      if (!out_.empty()) flush();
      return {IoStatus::ok, n, Fault::none};
    }
    const int err = SSL_get_error(ssl_.get(), rc);
    if (err == SSL_ERROR_WANT_READ) {
      if (!out_.empty()) flush();
      continue;
    }
    if (err != SSL_ERROR_ZERO_RETURN) return broken();
    eof_ = true;
    return {IoStatus::eof, 0, Fault::none};
  }
}

IoResult Transport::broken() noexcept {
  const unsigned long e = ERR_peek_error();
  const int reason = ERR_GET_LIB(e) == ERR_LIB_SSL ? ERR_GET_REASON(e) : 0;
  const bool alert = reason >= SSL_AD_REASON_OFFSET;
  const std::string text = take_error("connection broken");
  flush();  // our alert
  fault_ = write_fault_ = alert ? Fault::peer_reset : Fault::protocol_error;
  // In TLS 1.3 a server refuses our certificate after the handshake; without this line nobody would know why.
  log_limited(LogLevel::warning, describe_peer("TLS", peer_, connection_, server_, expected_) + ": " + text);
  return {IoStatus::error, 0, fault_};
}

void Transport::encrypt(Chain& from, std::size_t& total) noexcept {
  while (!from.empty() && out_.size() < kMaxQueued) {
    std::span<const std::byte> record = from.front();
    if (record.size() < kRecord && from.slices() > 1)
      record = std::span<const std::byte>(gather).first(from.peek(gather));  // a tiny record costs more than a copy
    record = record.first(std::min(record.size(), kRecord));
    std::size_t n = 0;
    const int rc = SSL_write_ex(ssl_.get(), record.data(), record.size(), &n);
    if (rc != 1) {
      if (SSL_get_error(ssl_.get(), rc) == SSL_ERROR_WANT_READ) return;
      write_fault_ = Fault::protocol_error;
      log_limited(LogLevel::warning, describe_peer("TLS", peer_, connection_, server_, expected_) + ": " + take_error("cannot send"));
      return;
    }
    from.consume(n);
    total += n;
  }
}

IoResult Transport::write(Chain& from) noexcept {
  if (state_ == State::waiting || state_ == State::handshaking) return {};
  if (write_fault_ != Fault::none) return {IoStatus::error, 0, write_fault_};
  if (state_ != State::open || fin_sent_) return {IoStatus::error, 0, Fault::io_error};
  std::size_t total = 0;
  std::size_t before = 0;
  do {
    before = total;
    encrypt(from, total);
    if (write_fault_ != Fault::none || !flush()) return {IoStatus::error, total, write_fault_};
  } while (!from.empty() && out_.empty() && total != before);
  return {total != 0 || from.empty() ? IoStatus::ok : IoStatus::again, total, Fault::none};
}

bool Transport::flush() noexcept {
  if (!out_.empty()) {
    const IoResult r = lower_->write(out_);
    if (r.status == IoStatus::error) {
      if (write_fault_ == Fault::none) write_fault_ = r.fault;
      out_.clear();
      return false;
    }
  }
  if (out_.empty() && std::exchange(fin_pending_, false)) lower_->shutdown_write();
  return true;
}

void Transport::shutdown_write() noexcept {
  if (state_ == State::closed || std::exchange(fin_sent_, true)) return;
  // Everything write() has taken is in out_ already, so close_notify is last. A peer that ended its side without one still
  // has to see that ours is whole (RFC 9112 §9.8).
  const bool usable = fault_ == Fault::none || fault_ == Fault::tls_truncated;
  if (state_ == State::open && usable && SSL_shutdown(ssl_.get()) < 0) ERR_clear_error();
  fin_pending_ = true;
  flush();
}

void Transport::close(Fault why) noexcept {
  if (state_ == State::closed) return;
  if (why == Fault::none && state_ == State::open) shutdown_write();
  state_ = State::closed;
  handler_ = nullptr;
  cancel();
  static_cast<Task&>(*this).unlink();
  Receive& r = Receive::local();
  if (r.owner == this) r.owner = nullptr;
  feed_ = {};
  stash_.clear();
  out_.clear();
  lower_->close(why);
}

}  // namespace tls_detail

std::unique_ptr<Transport> make_tls_server(Worker& worker, std::unique_ptr<Transport> lower, TlsContext& context,
                                           Duration handshake_timeout) {
  auto t = std::make_unique<tls_detail::Transport>(worker, std::move(lower), static_cast<tls_detail::Context&>(context));
  t->start_server(handshake_timeout);
  return t;
}

std::unique_ptr<Transport> make_tls_client(Worker& worker, std::unique_ptr<Transport> lower, TlsContext& context,
                                           const std::string& host, const std::string& verify_name,
                                           const std::string& session_key) {
  auto t = std::make_unique<tls_detail::Transport>(worker, std::move(lower), static_cast<tls_detail::Context&>(context));
  t->start_client(host, verify_name, session_key);
  return t;
}

}  // namespace twp
