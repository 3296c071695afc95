// Session: one connection speaking one HTTP version, in either role.
#pragma once

#include <cstdint>

#include "base/fault.h"
#include "http/stream.h"

namespace twp {

struct PeerInfo;  // net/transport.h

enum class Role : std::uint8_t { server, client };

/// Who owns a session (front, pool, load client).
class SessionOwner {
 public:
  /// capacity() changed: a stream ended, the peer allows more or fewer, the session drains. Client role.
  virtual void on_capacity(Session&) noexcept = 0;
  /// The session is over and holds no stream; the owner retires it. Exactly once, last.
  virtual void on_session_gone(Session&, Fault) noexcept = 0;

 protected:
  ~SessionOwner() = default;
};

class Session {
 public:
  virtual ~Session() = default;

  /// Client role: a new stream whose first call is send_head(request). nullptr when capacity() is 0.
  virtual Stream* open(StreamEvents& events) noexcept = 0;
  /// Client role: streams that open() would still give now.
  virtual unsigned capacity() const noexcept = 0;
  /// Client role: the peer has said how many streams it takes. Until then capacity() is at most one, and on_capacity() tells
  /// when it is known.
  virtual bool settled() const noexcept { return true; }
  /// Streams that are open.
  virtual unsigned active() const noexcept = 0;
  /// Finishes what is in flight, takes nothing new, then goes (Connection: close, GOAWAY).
  virtual void drain() noexcept = 0;
  /// Ends now: every stream gets on_gone(why), then the owner on_session_gone. Not from inside a callback of
  /// this session's own streams: those reset their stream.
  virtual void close(Fault why) noexcept = 0;
  virtual const PeerInfo& peer() const noexcept = 0;
  virtual HttpVersion version() const noexcept = 0;
};

}  // namespace twp
