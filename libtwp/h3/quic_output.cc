// How packets leave: all of a turn in one flush, in trains of packets of one size (GSO).
#include "h3/quic_impl.h"

namespace twp {
namespace {

/// One send call's worth: the largest UDP payload of IPv4. The thread's: packets are the kernel's when send() returns.
constexpr std::size_t kTrain = 65507;
constexpr int kTrainsPerFlush = 16;  // then others get a turn
thread_local std::array<std::uint8_t, kTrain> train;

}  // namespace

/// Writes one packet of stream data and whatever else is due.
struct QuicConnection::Writer {
  static ngtcp2_ssize write(ngtcp2_conn* conn, ngtcp2_path* path, ngtcp2_pkt_info* info, std::uint8_t* into,
                            std::size_t n, ngtcp2_tstamp now, void* user) noexcept {
    QuicConnection& c = *static_cast<QuicConnection*>(user);
    for (;;) {
      QuicOutput::Piece piece;
      if (c.keys_ && ngtcp2_conn_get_max_data_left(conn) != 0) piece = c.output_->next();
      std::uint32_t flags = NGTCP2_WRITE_STREAM_FLAG_MORE;
      if (piece.fin) flags |= NGTCP2_WRITE_STREAM_FLAG_FIN;
      // iovec and ngtcp2_vec are both a pointer and a length, in that order (checked below).
      const auto* octets = reinterpret_cast<const ngtcp2_vec*>(piece.octets.data());
      ngtcp2_ssize taken = -1;
      const ngtcp2_ssize w = ngtcp2_conn_writev_stream(conn, path, info, into, n, &taken, flags, piece.stream,
                                                       octets, piece.octets.size(), now);
      if (taken >= 0) c.output_->wrote(piece.stream, static_cast<std::size_t>(taken));
      switch (w) {
        case NGTCP2_ERR_WRITE_MORE: break;
        case NGTCP2_ERR_STREAM_DATA_BLOCKED: c.output_->blocked(piece.stream); break;
        case NGTCP2_ERR_STREAM_SHUT_WR:
        case NGTCP2_ERR_STREAM_NOT_FOUND: c.output_->stopped(piece.stream); break;
        default: return w;
      }
    }
  }
  static_assert(sizeof(iovec) == sizeof(ngtcp2_vec) &&
                offsetof(iovec, iov_base) == offsetof(ngtcp2_vec, base) &&
                offsetof(iovec, iov_len) == offsetof(ngtcp2_vec, len));
};

void QuicConnection::flush_soon() noexcept {
  if (!over_) worker_.schedule(Phase::flush, flush_task_);
}

void QuicConnection::sendable() noexcept {
  if (std::exchange(full_, false)) flush_soon();
}

void QuicConnection::flush() noexcept {
  if (over_) return;
  const Entered inside(*this);
  output_->on_flush();
  write_all();
  output_->on_flushed();
}

void QuicConnection::write_all() noexcept {
  const Instant now = host_.now();
  for (int i = 0; i < kTrainsPerFlush && !full_ && !ending_; ++i) {
    ngtcp2_path_storage path;
    ngtcp2_path_storage_zero(&path);
    ngtcp2_pkt_info info{};
    std::size_t segment = 0;
    const std::size_t room =
        paced_ ? std::clamp<std::size_t>(ngtcp2_conn_get_send_quantum(conn_), 1500, kTrain) : kTrain;
    const ngtcp2_ssize n = ngtcp2_conn_write_aggregate_pkt2(
        conn_, &path.path, &info, train.data(),
        std::max(room, ngtcp2_conn_get_path_max_tx_udp_payload_size(conn_)), &segment, Writer::write, 0, now);
    if (n < 0) {
      if (n == NGTCP2_ERR_CALLBACK_FAILURE && ending_) return;
      end({.how = Ending::How::library,
           .code = static_cast<std::uint64_t>(-n),
           .why = Fault::protocol_error,
           .detail = {},
           .drain = true});
      return;
    }
    if (n == 0) {
      if (paced_) ngtcp2_conn_update_pkt_tx_time(conn_, now);
      return;
    }
    const auto octets = std::as_bytes(std::span(train).first(static_cast<std::size_t>(n)));
    if (!host_.send(*this, from_path(path.path), static_cast<std::uint8_t>(info.ecn), octets, segment))
      full_ = true;
  }
  if (paced_) ngtcp2_conn_update_pkt_tx_time(conn_, now);
  if (!full_ && !ending_) flush_soon();
}

/// Called when the last of ngtcp2's calls has returned: whatever was done may have moved the deadline.
void QuicConnection::arm() noexcept {
  const ngtcp2_tstamp at = ngtcp2_conn_get_expiry(conn_);
  if (at == kNoTime)
    cancel();
  else if (!armed() || deadline() != at)
    host_.arm(*this, at);
}

void QuicConnection::on_timer() noexcept {
  if (over_) return;
  {
    const Entered inside(*this);
    const int rc = ngtcp2_conn_handle_expiry(conn_, host_.now());
    if (rc != 0) {
      expired(rc);
      return;
    }
  }
  if (!over_) flush_soon();
}

}  // namespace twp
