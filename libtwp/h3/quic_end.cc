// How a connection ends: who is told what (RFC 9000 §10).
#include "base/log.h"
#include "h3/quic_impl.h"

namespace twp {
namespace {

constexpr std::uint64_t kCryptoError = 0x100;  // RFC 9001 §4.8: and a TLS alert
constexpr std::uint64_t kCryptoErrorEnd = 0x200;
constexpr std::uint64_t kNoApplicationProtocol = kCryptoError + 120;
constexpr std::size_t kMostReason = 200;  // octets of a peer's text that are looked at

std::string hex(std::uint64_t v) {
  char digits[16];
  std::string text("0x");
  std::size_t n = 0;
  do {
    digits[n++] = "0123456789abcdef"[v & 15];
    v >>= 4;
  } while (v != 0);
  while (n != 0) text.push_back(digits[--n]);
  return text;
}

}  // namespace

void QuicConnection::read_failed(int error) noexcept {
  if (ending_) return;
  switch (error) {
    case NGTCP2_ERR_DRAINING: draining(); return;
    case NGTCP2_ERR_RETRY: retry_ = true; [[fallthrough]];
    case NGTCP2_ERR_DROP_CONN:
      end({.how = Ending::How::silent, .code = 0, .why = Fault::none, .detail = {}, .drain = false});
      return;
    case NGTCP2_ERR_CRYPTO: {
      QuicTls::Failure f = tls_->failure(peer_);
      end({.how = Ending::How::tls,
           .code = ngtcp2_conn_get_tls_alert(conn_),
           .why = f.fault,
           .detail = std::move(f.detail),
           .drain = true});
      return;
    }
    default:
      end({.how = Ending::How::library,
           .code = static_cast<std::uint64_t>(-error),
           .why = Fault::protocol_error,
           .detail = tls_->whom(peer_) + ": " + ngtcp2_strerror(error),
           .drain = true});
  }
}

/// The peer has closed, or has lost all memory of the connection.
void QuicConnection::draining() noexcept {
  Ending e{.how = Ending::How::silent, .code = 0, .why = Fault::peer_closed, .detail = {}, .drain = true};
  const ngtcp2_ccerr* said = ngtcp2_conn_get_ccerr(conn_);
  const std::string_view reason(reinterpret_cast<const char*>(said->reason),
                                std::min(said->reasonlen, kMostReason));
  const bool application = said->type == NGTCP2_CCERR_TYPE_APPLICATION;
  constexpr std::uint64_t kH3NoError = 0x100;
  if (stateless_reset_) {
    e.why = Fault::peer_reset;
    e.detail = tls_->whom(peer_) + ": stateless reset";
  } else if (said->error_code != (application ? kH3NoError : 0)) {
    const bool alert = !application && said->error_code >= kCryptoError && said->error_code < kCryptoErrorEnd;
    e.why = !alert                                       ? Fault::peer_reset
            : said->error_code == kNoApplicationProtocol ? Fault::tls_no_protocol
                                                         : Fault::tls_handshake;
    e.detail = tls_->whom(peer_) + ": closed by the peer with " +
               (application ? "application" : "transport") + " error " + hex(said->error_code) +
               (reason.empty() ? "" : ": " + std::string(reason));
  }
  end(std::move(e));
}

void QuicConnection::expired(int error) noexcept {
  Ending e{.how = Ending::How::silent, .code = 0, .why = Fault::idle_timeout, .detail = {}, .drain = false};
  if (error == NGTCP2_ERR_HANDSHAKE_TIMEOUT || !open_) {
    e.why = server_ ? Fault::tls_handshake : Fault::connect_timeout;
    e.detail = tls_->whom(peer_) + ": handshake took too long";
  } else if (error != NGTCP2_ERR_IDLE_CLOSE) {
    e.how = Ending::How::library;
    e.code = static_cast<std::uint64_t>(-error);
    e.why = Fault::protocol_error;
    e.detail = tls_->whom(peer_) + ": " + ngtcp2_strerror(error);
    e.drain = true;
  }
  end(std::move(e));
}

void QuicConnection::close(std::uint64_t code, Fault why, std::string_view reason) noexcept {
  if (over_ || ending_) return;
  const Entered inside(*this);
  end({.how = Ending::How::application,
       .code = code,
       .why = why,
       .detail = std::string(reason),
       .drain = true});
}

void QuicConnection::give_up(Fault why, std::string_view reason) noexcept {
  if (over_ || ending_) return;
  const Entered inside(*this);
  end({.how = Ending::How::silent,
       .code = 0,
       .why = why,
       .detail = tls_->whom(peer_) + ": " + std::string(reason),
       .drain = false});
}

/// The first reason counts.
void QuicConnection::end(Ending ending) noexcept {
  if (!over_ && !ending_) ending_ = std::move(ending);
}

void QuicConnection::leave() noexcept {
  if (--inside_ != 0 || over_) return;
  if (ending_)
    finish();
  else
    arm();
}

void QuicConnection::finish() noexcept {
  QuicFarewell farewell{ids_, {}, path_, Duration::zero()};
  if (ending_->drain) farewell.keep = 3 * probe_timeout();
  last_words(farewell);
  over_ = true;
  cancel();
  flush_task_.unlink();
  const Ending e = std::move(*ending_);
  host_.on_over(*this, std::move(farewell));
  if (events_ != nullptr) events_->on_over(e.why, e.detail);
}

/// CONNECTION_CLOSE, sent and kept. After it everything that arrives is answered with the same octets, so that the
/// connection itself can go.
void QuicConnection::last_words(QuicFarewell& farewell) noexcept {
  ngtcp2_ccerr error;
  ngtcp2_ccerr_default(&error);
  const Ending& e = *ending_;
  const auto* reason = reinterpret_cast<const std::uint8_t*>(e.detail.data());
  switch (e.how) {
    case Ending::How::silent: return;
    case Ending::How::application:
      ngtcp2_ccerr_set_application_error(&error, e.code, reason, e.detail.size());
      break;
    case Ending::How::transport: ngtcp2_ccerr_set_transport_error(&error, e.code, nullptr, 0); break;
    case Ending::How::tls:
      ngtcp2_ccerr_set_tls_alert(&error, static_cast<std::uint8_t>(e.code), nullptr, 0);
      break;
    case Ending::How::library: ngtcp2_ccerr_set_liberr(&error, -static_cast<int>(e.code), nullptr, 0); break;
  }
  std::array<std::uint8_t, NGTCP2_MAX_UDP_PAYLOAD_SIZE + 300> packet;
  ngtcp2_path_storage path;
  ngtcp2_path_storage_zero(&path);
  ngtcp2_pkt_info info{};
  const ngtcp2_ssize n = ngtcp2_conn_write_connection_close(conn_, &path.path, &info, packet.data(),
                                                            packet.size(), &error, host_.now());
  if (n <= 0) return;
  const auto octets = std::as_bytes(std::span(packet).first(static_cast<std::size_t>(n)));
  farewell.packet.assign(octets.begin(), octets.end());
  if (path.path.remote.addrlen != 0) farewell.path = from_path(path.path);
  host_.send(*this, farewell.path, static_cast<std::uint8_t>(info.ecn), octets, octets.size());
}

}  // namespace twp
