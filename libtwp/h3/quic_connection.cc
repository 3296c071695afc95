// How a connection begins, what it reads, and its streams' bookkeeping. Sending: quic_output.cc; the end: quic_end.cc.
#include <openssl/ssl.h>

#include <limits>

#include "h3/quic_impl.h"

namespace twp {
namespace {

constexpr std::uint64_t kControlWindow = 64 * 1024;  // octets of a unidirectional stream: control, QPACK
constexpr std::uint64_t kMaxUnidirectional =
    16;  // three in use, the rest for extensions and grease (RFC 9114 §6.2)
/// A path MTU beyond Ethernet's: what is tried in turn. Loopback takes the largest datagrams that there are.
constexpr std::uint16_t kLoopbackProbes[] = {1452, 16332, 65487};
constexpr std::size_t kLoopbackPayload = 65487;

ngtcp2_tstamp ns(Duration d) noexcept { return static_cast<ngtcp2_tstamp>(d.count()); }

/// Once for the process; looks up ciphers so that no connection has to.
bool init_crypto() noexcept {
  static const bool ok = ngtcp2_crypto_ossl_init() == 0;
  return ok;
}

QuicId random_id() noexcept {
  std::array<std::uint8_t, 16> octets;
  QuicCallbacks::random(octets.data(), octets.size());
  return QuicId(octets);
}

}  // namespace

QuicConnection::QuicConnection(Worker& worker, QuicHost& host, const QuicSettings& settings,
                               const QuicPath& path, bool server)
    : worker_(worker), host_(host), settings_(settings), path_(path), server_(server),
      paced_(!path.remote.is_loopback()) {
  peer_.local = path.local;
  peer_.remote = path.remote;
  peer_.tls = true;
}

QuicConnection::~QuicConnection() {
  if (!over_) host_.on_over(*this, QuicFarewell{ids_, {}, path_, Duration::zero()});
  // The TLS stack calls back into the connection while it dies, unless it cannot find it any more.
  if (tls_ != nullptr) SSL_set_app_data(tls_->native(), nullptr);
  tls_.reset();
  if (conn_ != nullptr) ngtcp2_conn_del(conn_);
  if (crypto_ != nullptr) ngtcp2_crypto_ossl_ctx_del(crypto_);
}

std::unique_ptr<QuicConnection> QuicConnection::accept(Worker& worker, QuicHost& host, TlsContext& context,
                                                       const QuicSettings& settings,
                                                       const QuicInitial& initial, const QuicPath& path) {
  std::unique_ptr<QuicConnection> c(new QuicConnection(worker, host, settings, path, true));
  c->tls_ = QuicTls::server(context, initial.version);
  if (c->tls_ == nullptr || !c->make_conn(&initial, nullptr) || !c->bind_tls()) return nullptr;
  return c;
}

std::unique_ptr<QuicConnection> QuicConnection::connect(Worker& worker, QuicHost& host, TlsContext& context,
                                                        const QuicSettings& settings,
                                                        const QuicTarget& target, const QuicPath& path) {
  std::unique_ptr<QuicConnection> c(new QuicConnection(worker, host, settings, path, false));
  c->tls_ = QuicTls::client(context, target.version, target.host, target.verify_name, target.session_key);
  if (c->tls_ == nullptr || !c->make_conn(nullptr, &target) || !c->bind_tls()) return nullptr;
  c->flush_soon();
  return c;
}

bool QuicConnection::make_conn(const QuicInitial* initial, const QuicTarget* target) {
  ngtcp2_settings s;
  ngtcp2_settings_default(&s);
  s.initial_ts = host_.now();
  s.cc_algo = NGTCP2_CC_ALGO_CUBIC;
  s.handshake_timeout = ns(settings_.handshake_timeout);
  s.glitch_ratelim_burst = settings_.glitch_burst;
  s.glitch_ratelim_rate = settings_.glitch_rate;
  if (!paced_) {
    s.max_tx_udp_payload_size = kLoopbackPayload;
    s.pmtud_probes = kLoopbackProbes;
    s.pmtud_probeslen = std::size(kLoopbackProbes);
  }
  ngtcp2_transport_params p;
  ngtcp2_transport_params_default(&p);
  p.initial_max_data = settings_.connection_window;
  p.initial_max_stream_data_bidi_local = p.initial_max_stream_data_bidi_remote = settings_.stream_window;
  p.initial_max_stream_data_uni = kControlWindow;
  p.initial_max_streams_bidi = server_ ? settings_.max_streams : 0;
  p.initial_max_streams_uni = kMaxUnidirectional;
  p.max_idle_timeout = ns(settings_.idle_timeout);
  p.active_connection_id_limit = 4;
  p.grease_quic_bit = 1;
  const ngtcp2_callbacks callbacks = QuicCallbacks::make(server_);
  const ngtcp2_path path = to_path(path_);
  const QuicId id = host_.new_id(*this, reset_token_);
  ids_.push_back(id);
  const ngtcp2_cid ours = to_cid(id);
  if (target != nullptr) {
    s.token = target->token.data();
    s.tokenlen = target->token.size();
    s.token_type = NGTCP2_TOKEN_TYPE_NEW_TOKEN;
    const ngtcp2_cid theirs = to_cid(random_id());
    return ngtcp2_conn_client_new(&conn_, &theirs, &ours, &path, target->version, &callbacks, &s, &p, nullptr,
                                  this) == 0;
  }
  s.token = initial->token.data();
  s.tokenlen = initial->token.size();
  s.token_type = initial->after_retry ? NGTCP2_TOKEN_TYPE_RETRY : NGTCP2_TOKEN_TYPE_NEW_TOKEN;
  p.original_dcid = to_cid(initial->original_dcid.value_or(initial->dcid));
  p.original_dcid_present = 1;
  if (initial->after_retry) {
    p.retry_scid = to_cid(initial->dcid);
    p.retry_scid_present = 1;
  }
  p.stateless_reset_token_present = 1;
  std::copy(reset_token_.begin(), reset_token_.end(), p.stateless_reset_token);
  const ngtcp2_cid theirs = to_cid(initial->scid);
  return ngtcp2_conn_server_new(&conn_, &theirs, &ours, &path, initial->version, &callbacks, &s, &p, nullptr,
                                this) == 0;
}

bool QuicConnection::bind_tls() noexcept {
  SSL* ssl = tls_->native();
  if (!init_crypto() || ngtcp2_crypto_ossl_ctx_new(&crypto_, ssl) != 0) return false;
  const int rc = server_ ? ngtcp2_crypto_ossl_configure_server_session(ssl)
                         : ngtcp2_crypto_ossl_configure_client_session(ssl);
  if (rc != 0) return false;
  ref_ = std::make_unique<Ref>();
  ref_->native = {[](ngtcp2_crypto_conn_ref* r) { return static_cast<QuicConnection*>(r->user_data)->conn_; },
                  this};
  SSL_set_app_data(ssl, &ref_->native);
  ngtcp2_conn_set_tls_native_handle(conn_, crypto_);
  return true;
}

void QuicConnection::attach(QuicEvents& events, QuicOutput& output) noexcept {
  events_ = &events;
  output_ = &output;
}

std::uint32_t QuicConnection::version() const noexcept {
  const std::uint32_t agreed = ngtcp2_conn_get_negotiated_version(conn_);
  return agreed != 0 ? agreed : ngtcp2_conn_get_client_chosen_version(conn_);
}

// --- input ------------------------------------------------------------------------------------------

QuicConnection::Received QuicConnection::receive(const QuicPath& path, std::uint8_t ecn,
                                                 std::span<const std::byte> train,
                                                 std::size_t segment) noexcept {
  if (over_) return Received::over;
  {
    const Entered inside(*this);
    while (!train.empty() && !ending_) {
      const auto datagram = train.first(segment == 0 ? train.size() : std::min(segment, train.size()));
      train = train.subspan(datagram.size());
      read(path, ecn, datagram);
    }
    if (path != path_ && !ending_) note_path();
    if (!ending_) events_->on_input_over();
  }
  if (over_) return retry_ ? Received::retry : Received::over;
  flush_soon();
  return Received::ok;
}

void QuicConnection::read(const QuicPath& path, std::uint8_t ecn,
                          std::span<const std::byte> datagram) noexcept {
  const ngtcp2_path way = to_path(path);
  const ngtcp2_pkt_info info{ecn};
  const int rc =
      ngtcp2_conn_read_pkt(conn_, &way, &info, reinterpret_cast<const std::uint8_t*>(datagram.data()),
                           datagram.size(), host_.now());
  if (rc != 0) read_failed(rc);
}

/// The peer may have moved on to another path.
void QuicConnection::note_path() noexcept {
  path_ = from_path(*ngtcp2_conn_get_path(conn_));
  peer_.local = path_.local;
  peer_.remote = path_.remote;
  paced_ = paced_ || !path_.remote.is_loopback();
}

void QuicConnection::opened() noexcept {
  tls_->fill(peer_);
  if (peer_.alpn != "h3") {  // RFC 9001 §8.1: no connection without an application protocol
    constexpr std::uint8_t kNoApplicationProtocol = 120;
    end({.how = Ending::How::tls,
         .code = kNoApplicationProtocol,
         .why = Fault::tls_no_protocol,
         .detail = tls_->whom(peer_) + ": no application protocol (ALPN) in common",
         .drain = true});
    return;
  }
  open_ = true;
  if (server_) {
    const auto token = host_.new_token(path_.remote);
    if (!token.empty()) ngtcp2_conn_submit_new_token(conn_, token.data(), token.size());
  }
  host_.on_open(*this);
  events_->on_open();
}

// --- streams ----------------------------------------------------------------------------------------

std::int64_t QuicConnection::open_stream(bool bidirectional) noexcept {
  if (over_ || ending_) return -1;
  std::int64_t id = -1;
  const int rc = bidirectional ? ngtcp2_conn_open_bidi_stream(conn_, &id, nullptr)
                               : ngtcp2_conn_open_uni_stream(conn_, &id, nullptr);
  return rc == 0 ? id : -1;
}

std::uint64_t QuicConnection::streams_left() const noexcept {
  return over_ || ending_ ? 0 : ngtcp2_conn_get_streams_bidi_left(conn_);
}

void QuicConnection::grant_streams(std::size_t n) noexcept {
  if (!over_) ngtcp2_conn_extend_max_streams_bidi(conn_, n);
}

void QuicConnection::credit(std::int64_t stream, std::size_t n) noexcept {
  if (!over_) ngtcp2_conn_extend_max_stream_offset(conn_, stream, n);
}

void QuicConnection::credit_connection(std::size_t n) noexcept {
  if (!over_) ngtcp2_conn_extend_max_offset(conn_, n);
}

void QuicConnection::reset_stream(std::int64_t stream, std::uint64_t code) noexcept {
  if (!over_) ngtcp2_conn_shutdown_stream_write(conn_, 0, stream, code);
}

void QuicConnection::stop_sending(std::int64_t stream, std::uint64_t code) noexcept {
  if (!over_) ngtcp2_conn_shutdown_stream_read(conn_, 0, stream, code);
}

// --- life -------------------------------------------------------------------------------------------

void QuicConnection::keep_alive(bool on) noexcept {
  if (over_) return;
  ngtcp2_conn_set_keep_alive_timeout(conn_, on ? ns(settings_.idle_timeout) / 3 : kNoTime);
}

Duration QuicConnection::probe_timeout() const noexcept {
  return Duration(static_cast<Duration::rep>(ngtcp2_conn_get_pto(conn_)));
}

bool QuicConnection::migrate(const QuicPath& path) noexcept {
  if (over_ || ending_ || server_) return false;
  const ngtcp2_path way = to_path(path);
  if (ngtcp2_conn_initiate_immediate_migration(conn_, &way, host_.now()) != 0) return false;
  note_path();
  flush_soon();
  return true;
}

bool QuicConnection::update_keys() noexcept {
  if (over_ || ending_ || ngtcp2_conn_initiate_key_update(conn_, host_.now()) != 0) return false;
  flush_soon();
  return true;
}

}  // namespace twp
