// Lingering close: lets the peer read an answer that was sent while it was still sending (RFC 9112 §9.6).
#pragma once

#include <memory>

#include "event/worker.h"
#include "net/transport.h"

namespace twp {

/// Takes an open transport whose answer has been handed to it in full. Ends our side, then reads and discards
/// until the peer has ended its own, 2 s have passed or 1 MiB has come, then closes. Without this the kernel
/// answers unread octets with RST, and the peer may lose the answer. Nobody is told; a null transport is ignored.
void linger_and_close(Worker& worker, std::unique_ptr<Transport> transport);

}  // namespace twp
