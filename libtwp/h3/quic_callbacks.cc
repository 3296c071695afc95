// What ngtcp2 calls. Nothing in here makes it write: that is the flush's.
#include <openssl/rand.h>

#include "h3/quic_impl.h"

namespace twp {

struct QuicCallbacks::On {
  static QuicConnection& self(void* user) noexcept { return *static_cast<QuicConnection*>(user); }
  /// A callback may have ended the connection: ngtcp2 is not to go on with the packet then.
  static int verdict(const QuicConnection& c) noexcept { return c.ending_ ? NGTCP2_ERR_CALLBACK_FAILURE : 0; }

  static void rand(std::uint8_t* into, std::size_t n, const ngtcp2_rand_ctx*) noexcept { random(into, n); }

  static int new_id(ngtcp2_conn*, ngtcp2_cid* cid, ngtcp2_stateless_reset_token* token, std::size_t,
                    void* user) noexcept {
    QuicConnection& c = self(user);
    QuicResetToken t;
    const QuicId id = c.host_.new_id(c, t);
    c.ids_.push_back(id);
    *cid = to_cid(id);
    std::copy(t.begin(), t.end(), token->data);
    return 0;
  }

  static int drop_id(ngtcp2_conn*, const ngtcp2_cid* cid, void* user) noexcept {
    QuicConnection& c = self(user);
    const QuicId id = to_id(*cid);
    std::erase(c.ids_, id);
    c.host_.drop_id(c, id);
    return 0;
  }

  static int key(ngtcp2_conn*, ngtcp2_encryption_level level, void* user) noexcept {
    QuicConnection& c = self(user);
    if (level != NGTCP2_ENCRYPTION_LEVEL_1RTT || std::exchange(c.keys_, true)) return 0;
    if (c.server_) c.tls_->negotiated(ngtcp2_conn_get_negotiated_version(c.conn_));
    c.events_->on_keys();
    return verdict(c);
  }

  static int handshake_completed(ngtcp2_conn*, void* user) noexcept {
    QuicConnection& c = self(user);
    c.opened();
    return verdict(c);
  }

  static int stream_data(ngtcp2_conn*, std::uint32_t flags, std::int64_t id, std::uint64_t,
                         const std::uint8_t* data, std::size_t n, void* user, void*) noexcept {
    QuicConnection& c = self(user);
    c.events_->on_data(id, std::as_bytes(std::span(data, n)), (flags & NGTCP2_STREAM_DATA_FLAG_FIN) != 0);
    return verdict(c);
  }

  static int stream_reset(ngtcp2_conn*, std::int64_t id, std::uint64_t, std::uint64_t code, void* user,
                          void*) noexcept {
    QuicConnection& c = self(user);
    c.events_->on_reset(id, code);
    return verdict(c);
  }

  static int stream_close(ngtcp2_conn*, std::uint32_t flags, std::int64_t id, std::uint64_t code, void* user,
                          void*) noexcept {
    QuicConnection& c = self(user);
    const bool set = (flags & NGTCP2_STREAM_CLOSE_FLAG_APP_ERROR_CODE_SET) != 0;
    if (ngtcp2_is_bidi_stream(id) == 0 && ngtcp2_conn_is_local_stream(c.conn_, id) == 0)
      ngtcp2_conn_extend_max_streams_uni(c.conn_, 1);
    c.events_->on_closed(id, set ? std::optional(code) : std::nullopt);
    return verdict(c);
  }

  static int acked(ngtcp2_conn*, std::int64_t id, std::uint64_t, std::uint64_t n, void* user,
                   void*) noexcept {
    self(user).output_->acked(id, n);
    return 0;
  }

  static int stream_credit(ngtcp2_conn*, std::int64_t id, std::uint64_t, void* user, void*) noexcept {
    self(user).output_->unblocked(id);
    return 0;
  }

  static int more_streams(ngtcp2_conn*, std::uint64_t, void* user) noexcept {
    QuicConnection& c = self(user);
    c.events_->on_more_streams();
    return verdict(c);
  }

  static int new_token(ngtcp2_conn*, const std::uint8_t* token, std::size_t n, void* user) noexcept {
    self(user).token_.assign(token, token + n);
    return 0;
  }

  static int stateless_reset(ngtcp2_conn*, const ngtcp2_pkt_stateless_reset2*, void* user) noexcept {
    self(user).stateless_reset_ = true;
    return 0;
  }

  static int path_validated(ngtcp2_conn*, std::uint32_t flags, const ngtcp2_path* path, const ngtcp2_path*,
                            ngtcp2_path_validation_result result, void* user) noexcept {
    QuicConnection& c = self(user);
    if (result != NGTCP2_PATH_VALIDATION_RESULT_SUCCESS ||
        (flags & NGTCP2_PATH_VALIDATION_FLAG_NEW_TOKEN) == 0)
      return 0;
    const auto token = c.host_.new_token(from_path(*path).remote);
    if (!token.empty()) ngtcp2_conn_submit_new_token(c.conn_, token.data(), token.size());
    return 0;
  }
};

void QuicCallbacks::random(std::uint8_t* into, std::size_t n) noexcept {
  RAND_bytes(into, static_cast<int>(n));
}

ngtcp2_callbacks QuicCallbacks::make(bool server) noexcept {
  ngtcp2_callbacks c{};
  c.recv_crypto_data = ngtcp2_crypto_recv_crypto_data_cb;
  c.encrypt = ngtcp2_crypto_encrypt_cb;
  c.decrypt = ngtcp2_crypto_decrypt_cb;
  c.hp_mask = ngtcp2_crypto_hp_mask_cb;
  c.update_key = ngtcp2_crypto_update_key_cb;
  c.delete_crypto_aead_ctx = ngtcp2_crypto_delete_crypto_aead_ctx_cb;
  c.delete_crypto_cipher_ctx = ngtcp2_crypto_delete_crypto_cipher_ctx_cb;
  c.get_path_challenge_data2 = ngtcp2_crypto_get_path_challenge_data2_cb;
  c.version_negotiation = ngtcp2_crypto_version_negotiation_cb;
  c.rand = On::rand;
  c.get_new_connection_id2 = On::new_id;
  c.remove_connection_id = On::drop_id;
  c.handshake_completed = On::handshake_completed;
  c.recv_stream_data = On::stream_data;
  c.stream_reset = On::stream_reset;
  c.stream_close = On::stream_close;
  c.acked_stream_data_offset = On::acked;
  c.extend_max_stream_data = On::stream_credit;
  c.extend_max_local_streams_bidi = On::more_streams;
  c.recv_stateless_reset2 = On::stateless_reset;
  c.path_validation = On::path_validated;
  if (server) {
    c.recv_client_initial = ngtcp2_crypto_recv_client_initial_cb;
    c.recv_tx_key = On::key;
  } else {
    c.client_initial = ngtcp2_crypto_client_initial_cb;
    c.recv_rx_key = On::key;  // with it come the server's transport parameters into force
    c.recv_retry = ngtcp2_crypto_recv_retry_cb;
    c.recv_new_token = On::new_token;
  }
  return c;
}

}  // namespace twp
