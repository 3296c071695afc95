// H3Session: one HTTP/3 connection in either role, RFC 9114.
#pragma once

#include <memory>
#include <string>

#include "event/worker.h"
#include "h3/quic_connection.h"
#include "http/limits.h"
#include "http/session.h"

namespace twp {

/// What a QUIC connection for HTTP/3 under these limits grants: limits.h2_max_streams, h2_connection_window and the glitch
/// limits count for HTTP/3 as for HTTP/2.
QuicSettings h3_quic_settings(const HttpLimits& limits) noexcept;

/// Who waits for a connection to an origin. Exactly one of the two is called, never from inside make_h3_client(); none after
/// Session::close().
class H3Opening {
 public:
  virtual void on_h3_open(Session&) noexcept = 0;
  /// `detail` is one line for the log. The session is over; whoever holds it retires it.
  virtual void on_h3_open_failed(Session&, Fault why, const std::string& detail) noexcept = 0;

 protected:
  ~H3Opening() = default;
};

/// Makes an HTTP/3 session over a QUIC connection that has not begun to read or write: heads of requests may come with the
/// last packet of the handshake. The session owns the connection.
///
/// Server role: at most limits.h2_max_streams requests at a time; a client gets room for one more when one is over on both
/// sides. A malformed request is answered with RESET_STREAM and H3_MESSAGE_ERROR, one that passes a limit with
/// info(fault).http_status; both are reported to `acceptor`. A handshake that fails ends the session like any other loss.
/// `acceptor`, `owner`, `limits` and `worker` outlive the session.
std::unique_ptr<Session> make_h3_server(Worker& worker, std::unique_ptr<QuicConnection> connection,
                                        Acceptor& acceptor, SessionOwner& owner, const HttpLimits& limits);

/// Client role: capacity() is 0 until `opening` is told, then what the origin and limits.h2_max_streams leave. `owner` hears
/// nothing of a session that has not opened. Streams that the origin has provably not processed end with
/// Fault::origin_refused_stream. An extended CONNECT waits for the origin's SETTINGS and ends with Fault::origin_no_tunnel
/// when they do not allow it.
std::unique_ptr<Session> make_h3_client(Worker& worker, std::unique_ptr<QuicConnection> connection,
                                        H3Opening& opening, SessionOwner& owner, const HttpLimits& limits);

}  // namespace twp
