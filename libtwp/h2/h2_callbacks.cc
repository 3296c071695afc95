// What nghttp2 calls. Nothing in here enters nghttp2 again: what has to be submitted is noted and done by the flush.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "h2/h2_impl.h"

namespace twp::h2 {

/// What a head weighs that is hopelessly too large: a few of them end the connection.
constexpr std::uint32_t kHopelessHead = 32 * GlitchCounter::kWhole;

struct Callbacks {
  static H2Session& self(void* user) noexcept { return *static_cast<H2Session*>(user); }
  static std::string_view text(const std::uint8_t* p, std::size_t n) noexcept {
    return {reinterpret_cast<const char*>(p), n};
  }
  static H2Stream* stream(nghttp2_session* ng, std::int32_t id) noexcept {
    return static_cast<H2Stream*>(nghttp2_session_get_stream_user_data(ng, id));
  }

  static int on_begin_headers(nghttp2_session*, const nghttp2_frame* frame, void* user) noexcept {
    if (frame->hd.type == NGHTTP2_HEADERS) self(user).begin_section(*frame);
    return 0;
  }

  static int on_header(nghttp2_session* ng, const nghttp2_frame* frame, const std::uint8_t* name,
                       std::size_t namelen, const std::uint8_t* value, std::size_t valuelen,
                       std::uint8_t flags, void* user) noexcept {
    H2Stream* s = stream(ng, frame->hd.stream_id);
    if (frame->hd.type != NGHTTP2_HEADERS || s == nullptr) return 0;
    const bool fits =
        s->reader_.add(text(name, namelen), text(value, valuelen), (flags & NGHTTP2_NV_FLAG_NO_INDEX) != 0);
    // Without the rest of the block the table is not what the peer thinks it is: only the connection can end
    // (RFC 9113 §10.5.1). With it, each octet that is still to come would cost us a field.
    if (s->reader_.is_bomb(frame->hd.length)) return NGHTTP2_ERR_CALLBACK_FAILURE;
    if (fits) return 0;
    s->defect_ = Fault::head_too_large;
    H2Session& me = self(user);
    me.guard_.glitches.add(kHopelessHead, me.worker_.now(), me.limits_);
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;  // resets the stream and stops telling us of its fields
  }

  /// nghttp2 would pass over fields with octets that do not belong there; what follows them is not to be trusted.
  static int on_invalid_header(nghttp2_session*, const nghttp2_frame*, const std::uint8_t*, std::size_t,
                               const std::uint8_t*, std::size_t, std::uint8_t, void*) noexcept {
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  }

  static int on_frame_recv(nghttp2_session* ng, const nghttp2_frame* frame, void* user) noexcept {
    H2Session& me = self(user);
    const bool end = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    switch (frame->hd.type) {
      case NGHTTP2_HEADERS:
        if (H2Stream* s = stream(ng, frame->hd.stream_id)) {
          if (end) s->remote_end_ = true;
          if (s->head_taken_)
            me.take_trailers(*s);
          else if (me.server())
            me.take_request(*s, end);
          else
            me.take_response(*s, end);
        }
        break;
      case NGHTTP2_DATA:
        if (H2Stream* s = stream(ng, frame->hd.stream_id); s != nullptr && end) {
          s->remote_end_ = true;
          me.end_of_message(*s);
        }
        break;
      case NGHTTP2_SETTINGS:
        if ((frame->hd.flags & NGHTTP2_FLAG_ACK) != 0)
          me.settings_sent_ = kNever;
        else
          me.take_settings();
        break;
      case NGHTTP2_PING:
        // The answer to the PING behind the first GOAWAY: whoever sent a request before it read that has been heard.
        if ((frame->hd.flags & NGHTTP2_FLAG_ACK) != 0 && me.drain_at_ != kNever) {
          me.drain_at_ = me.worker_.now();
          me.flush_soon();
        }
        break;
      case NGHTTP2_GOAWAY: me.take_goaway(); break;
      default: break;
    }
    return 0;
  }

  static int on_invalid_frame(nghttp2_session* ng, const nghttp2_frame* frame, int, void* user) noexcept {
    H2Session& me = self(user);
    me.guard_.glitches.add(GlitchCounter::kWhole, me.worker_.now(), me.limits_);
    if (frame->hd.stream_id == 0) return 0;
    me.guard_.we_reset(frame->hd.stream_id);
    H2Stream* s = stream(ng, frame->hd.stream_id);
    if (s == nullptr || s->defect_ != Fault::none) return 0;
    if (frame->hd.type == NGHTTP2_HEADERS && !s->head_taken_)
      s->defect_ = me.server() ? Fault::bad_header : Fault::origin_bad_head;
    else
      s->defect_ = me.server() ? Fault::bad_framing : Fault::origin_bad_framing;
    return 0;
  }

  static int on_data_chunk(nghttp2_session* ng, std::uint8_t, std::int32_t id, const std::uint8_t* data,
                           std::size_t n, void* user) noexcept {
    H2Session& me = self(user);
    // Connection credit returns on receipt, so that one slow stream never stalls the others.
    me.connection_credit_ += n;
    if (H2Stream* s = stream(ng, id)) me.take_data(*s, data, n);
    return 0;
  }

  static int on_stream_close(nghttp2_session* ng, std::int32_t id, std::uint32_t code, void* user) noexcept {
    if (H2Stream* s = stream(ng, id)) self(user).stream_closed(*s, code);
    return 0;
  }

  static int on_frame_send(nghttp2_session*, const nghttp2_frame* frame, void* user) noexcept {
    self(user).frame_sent(*frame);
    return 0;
  }

  static int on_frame_not_send(nghttp2_session* ng, const nghttp2_frame* frame, int error,
                               void* user) noexcept {
    if (frame->hd.type != NGHTTP2_HEADERS || error == NGHTTP2_ERR_STREAM_CLOSING ||
        error == NGHTTP2_ERR_STREAM_CLOSED)
      return 0;
    H2Stream* s = stream(ng, frame->hd.stream_id);
    if (s == nullptr) return 0;
    // Our own head cannot be sent (too large even for us): the peer must not wait for it.
    s->reset_code_ = NGHTTP2_INTERNAL_ERROR;
    s->reset_wanted_ = true;
    self(user).due_.push_back(s);
    return 0;
  }

  static nghttp2_ssize on_read(nghttp2_session*, std::int32_t, std::uint8_t*, std::size_t length,
                               std::uint32_t* flags, nghttp2_data_source* source, void* user) noexcept {
    return self(user).read_body(*static_cast<H2Stream*>(source->ptr), length, *flags);
  }

  static int on_send_data(nghttp2_session*, nghttp2_frame*, const std::uint8_t* head, std::size_t length,
                          nghttp2_data_source* source, void* user) noexcept {
    H2Session& me = self(user);
    me.put_data(*static_cast<H2Stream*>(source->ptr), head, length);
    return me.out_.size() >= H2Session::kMostOutput ? NGHTTP2_ERR_PAUSE : 0;
  }

  static nghttp2_session_callbacks* make() noexcept {
    nghttp2_session_callbacks* c = nullptr;
    nghttp2_session_callbacks_new(&c);
    nghttp2_session_callbacks_set_on_begin_headers_callback(c, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(c, on_header);
    nghttp2_session_callbacks_set_on_invalid_header_callback(c, on_invalid_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(c, on_frame_recv);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(c, on_invalid_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(c, on_data_chunk);
    nghttp2_session_callbacks_set_on_stream_close_callback(c, on_stream_close);
    nghttp2_session_callbacks_set_on_frame_send_callback(c, on_frame_send);
    nghttp2_session_callbacks_set_on_frame_not_send_callback(c, on_frame_not_send);
    nghttp2_session_callbacks_set_send_data_callback(c, on_send_data);
    return c;
  }

  static nghttp2_option* options() noexcept {
    nghttp2_option* o = nullptr;
    nghttp2_option_new(&o);
    nghttp2_option_set_no_auto_window_update(o, 1);
    nghttp2_option_set_no_closed_streams(o, 1);
    nghttp2_option_set_max_reserved_remote_streams(o, 0);
    nghttp2_option_set_max_continuations(o, kMostContinuations);
    nghttp2_option_set_builtin_recv_extension_type(o, NGHTTP2_PRIORITY_UPDATE);
    // Heads have their own limits, and resets are counted with everything else that is suspicious (FrameGuard).
    nghttp2_option_set_max_send_header_block_length(o, std::size_t{64} << 20);
    nghttp2_option_set_stream_reset_rate_limit(o, std::uint64_t{1} << 40, std::uint64_t{1} << 40);
    return o;
  }
};

namespace {

thread_local char frame_buffer[16384 + 64];  // a frame as large as we send them, its head, padding

/// Memory of a server session. nghttp2 gives every session a buffer of 16 KiB in which it packs the frame that it sends. What is
/// there is in our output before anything else happens, so that all sessions of a thread can share one, and an idle connection
/// holds none. A head that is longer goes on in further buffers, which are its session's own. Not for the client role: its
/// preface waits there for the first flush.
struct SharedFrameBuffer {
  static void* allocate(std::size_t size, void*) noexcept { return std::malloc(size); }
  static void* allocate_zeroed(std::size_t n, std::size_t size, void*) noexcept { return std::calloc(n, size); }
  static void* reallocate(void* p, std::size_t size, void* user) noexcept {
    void*& shared = *static_cast<void**>(user);
    // The first of that size is made with the session.
    if (p == nullptr && shared == nullptr && size > 16384 && size <= sizeof frame_buffer) return shared = frame_buffer;
    if (p == nullptr || p != shared) return std::realloc(p, size);
    void* own = std::malloc(size);
    if (own != nullptr) std::memcpy(own, p, std::min(size, sizeof frame_buffer));
    return own;
  }
  static void release(void* p, void* user) noexcept {
    if (p != *static_cast<void**>(user)) std::free(p);
  }
};

}  // namespace

H2Stream* H2Session::stream(std::int32_t id) noexcept { return Callbacks::stream(ng_, id); }

/// One set of callbacks and options for all sessions and threads; never changed, never freed.
void H2Session::make_nghttp2() noexcept {
  static nghttp2_session_callbacks* const callbacks = Callbacks::make();
  static nghttp2_option* const options = Callbacks::options();
  if (!server()) {
    nghttp2_session_client_new2(&ng_, callbacks, this, options);
    return;
  }
  using M = SharedFrameBuffer;
  nghttp2_mem memory{&frame_buffer_, M::allocate, M::release, M::allocate_zeroed, M::reallocate};
  nghttp2_session_server_new3(&ng_, callbacks, this, options, &memory);
}

const nghttp2_data_source_read_callback2 H2Session::kRead = Callbacks::on_read;

}  // namespace twp::h2
