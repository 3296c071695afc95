// What nghttp3 calls. Nothing in here enters nghttp3 again, but for the trailers behind the last octet of a body.
#include <openssl/rand.h>

#include <string_view>

#include "h3/h3_impl.h"

namespace twp::h3 {

/// What a head weighs that is hopelessly too large: a few of them end the connection.
constexpr std::uint32_t kHopelessHead = 32 * GlitchCounter::kWhole;

struct Callbacks {
  static H3Session& self(void* user) noexcept { return *static_cast<H3Session*>(user); }
  static H3Stream* stream(void* p) noexcept { return static_cast<H3Stream*>(p); }
  static std::string_view text(const nghttp3_rcbuf* b) noexcept {
    const nghttp3_vec v = nghttp3_rcbuf_get_buf(b);
    return {reinterpret_cast<const char*>(v.base), v.len};
  }
  /// Server role: nghttp3 makes a stream when its first octet comes, and then does not know ours.
  static H3Stream* find(H3Session& me, std::int64_t id, void* p) noexcept {
    return p != nullptr ? stream(p) : me.table_.find(id);
  }

  static int on_begin_headers(nghttp3_conn* ng, std::int64_t id, void* user, void* p) noexcept {
    H3Session& me = self(user);
    H3Stream* s = find(me, id, p);
    if (s == nullptr) return 0;
    if (p == nullptr) nghttp3_conn_set_stream_user_data(ng, id, s);
    me.begin_section(*s, false);
    return 0;
  }
  static int on_begin_trailers(nghttp3_conn*, std::int64_t, void* user, void* p) noexcept {
    if (p != nullptr) self(user).begin_section(*stream(p), true);
    return 0;
  }

  static int on_header(nghttp3_conn*, std::int64_t, std::int32_t, nghttp3_rcbuf* name, nghttp3_rcbuf* value,
                       std::uint8_t flags, void* user, void* p) noexcept {
    if (p == nullptr || stream(p)->bomb_) return 0;
    H3Stream& s = *stream(p);
    if (s.reader_.add(text(name), text(value), (flags & NGHTTP3_NV_FLAG_NEVER_INDEX) != 0)) return 0;
    // Far over the limits: the rest of the section is decompressed for the table's sake and looked at by nobody.
    s.bomb_ = true;
    H3Session& me = self(user);
    me.glitches_.add(kHopelessHead, me.now(), me.limits_);
    return 0;
  }

  static int on_end_section(nghttp3_conn*, std::int64_t, int fin, void* user, void* p) noexcept {
    if (p != nullptr) self(user).end_section(*stream(p), fin != 0);
    return 0;
  }

  static int on_data(nghttp3_conn*, std::int64_t id, const std::uint8_t* data, std::size_t n, void* user,
                     void* p) noexcept {
    H3Session& me = self(user);
    // Connection credit returns on receipt, so that one slow stream never stalls the others.
    me.conn_->credit_connection(n);
    me.credited_ += n;
    if (H3Stream* s = find(me, id, p)) me.take_data(*s, std::as_bytes(std::span(data, n)));
    return 0;
  }

  static int on_deferred_consume(nghttp3_conn*, std::int64_t id, std::size_t n, void* user, void*) noexcept {
    H3Session& me = self(user);
    me.conn_->credit(id, n);
    me.conn_->credit_connection(n);
    return 0;
  }

  static int on_end_stream(nghttp3_conn*, std::int64_t, void* user, void* p) noexcept {
    if (p == nullptr) return 0;
    stream(p)->remote_end_ = true;
    self(user).end_of_message(*stream(p));
    return 0;
  }

  static int on_stop_sending(nghttp3_conn*, std::int64_t id, std::uint64_t code, void* user, void*) noexcept {
    self(user).conn_->stop_sending(id, code);
    return 0;
  }
  static int on_reset_stream(nghttp3_conn*, std::int64_t id, std::uint64_t code, void* user, void*) noexcept {
    self(user).conn_->reset_stream(id, code);
    return 0;
  }

  static int on_acked(nghttp3_conn*, std::int64_t, std::uint64_t n, void*, void* p) noexcept {
    if (p != nullptr) stream(p)->sent_.acked(static_cast<std::size_t>(n));
    return 0;
  }

  static int on_settings(nghttp3_conn*, const nghttp3_proto_settings* settings, void* user) noexcept {
    self(user).take_settings(*settings);
    return 0;
  }
  static int on_shutdown(nghttp3_conn*, std::int64_t id, void* user) noexcept {
    self(user).take_goaway(id);
    return 0;
  }

  static void rand(std::uint8_t* into, std::size_t n) noexcept { RAND_bytes(into, static_cast<int>(n)); }

  static nghttp3_ssize on_read(nghttp3_conn*, std::int64_t, nghttp3_vec* into, std::size_t most,
                               std::uint32_t* flags, void* user, void* p) noexcept {
    return self(user).read_body(*stream(p), into, most, *flags);
  }

  static nghttp3_callbacks make() noexcept {
    nghttp3_callbacks c{};
    c.acked_stream_data = on_acked;
    c.recv_data = on_data;
    c.deferred_consume = on_deferred_consume;
    c.begin_headers = on_begin_headers;
    c.begin_trailers = on_begin_trailers;
    c.recv_header = c.recv_trailer = on_header;
    c.end_headers = c.end_trailers = on_end_section;
    c.end_stream = on_end_stream;
    c.stop_sending = on_stop_sending;
    c.reset_stream = on_reset_stream;
    c.shutdown = on_shutdown;
    c.recv_settings2 = on_settings;
    c.rand = rand;
    return c;
  }
};

bool H3Session::make_nghttp3() noexcept {
  constexpr std::size_t kTable = 4096;  // octets of dynamic table; halves the time spent on heads
  static const nghttp3_callbacks callbacks = Callbacks::make();
  nghttp3_settings s;
  nghttp3_settings_default(&s);
  s.max_field_section_size = server() ? limits_.max_head : limits_.max_response_head;
  s.qpack_max_dtable_capacity = kTable;
  s.qpack_encoder_max_dtable_capacity = kTable;
  s.qpack_blocked_streams = limits_.h2_max_streams;
  s.qpack_indexing_strat = NGHTTP3_QPACK_INDEXING_STRAT_EAGER;
  s.enable_connect_protocol = server() ? 1 : 0;
  s.glitch_ratelim_burst = limits_.h2_glitch_burst;
  s.glitch_ratelim_rate = limits_.h2_glitch_rate;
  const int rc = server() ? nghttp3_conn_server_new(&ng_, &callbacks, &s, nullptr, this)
                          : nghttp3_conn_client_new(&ng_, &callbacks, &s, nullptr, this);
  if (rc != 0) return false;
  max_client_streams_ = limits_.h2_max_streams;
  if (server()) nghttp3_conn_set_max_client_streams_bidi(ng_, max_client_streams_);
  return true;
}

const nghttp3_data_reader H3Session::kReader{Callbacks::on_read};

}  // namespace twp::h3
