#include "tls/handshake.h"

#include <openssl/x509v3.h>

namespace twp::tls_detail {
namespace {

void check_name(SSL* ssl, const std::string& name) {
  X509_VERIFY_PARAM* param = SSL_get0_param(ssl);
  // RFC 9525: subject alternative names only, and a wildcard is a whole label.
  X509_VERIFY_PARAM_set_hostflags(param,
                                  X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
  if (Address::parse(name, 0))
    X509_VERIFY_PARAM_set1_ip_asc(param, name.c_str());
  else
    X509_VERIFY_PARAM_set1_host(param, name.data(), name.size());
}

std::string subject_of(X509* x) {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  if (bio == nullptr || X509_NAME_print_ex(bio.get(), X509_get_subject_name(x), 0, XN_FLAG_RFC2253) < 0)
    return {};
  char* text = nullptr;
  const long len = BIO_get_mem_data(bio.get(), &text);
  return len > 0 ? std::string(text, static_cast<std::size_t>(len)) : std::string();
}

}  // namespace

std::string expect_server(SSL* ssl, Context& context, Connection& connection, const ServerName& want,
                          PeerInfo& peer) {
  std::string name = want.host;
  if (name.ends_with('.')) name.pop_back();
  // RFC 6066 §3: no IP literals in server_name.
  if (!name.empty() && !Address::parse(name, 0)) {
    // The macro SSL_set_tlsext_host_name, without its C cast.
    SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, name.data());
    peer.sni = name;
  }
  std::string expected = want.verify_name.empty() ? name : want.verify_name;
  if (expected.ends_with('.')) expected.pop_back();
  if (context.verifies() && !expected.empty()) check_name(ssl, expected);
  if (!context.caches()) return expected;
  // The certificate is not looked at again when a session is resumed: it only counts for the name that was checked.
  connection.slot = want.session_key + '\0' + name + '\0' + expected;
  if (SSL_SESSION* session = context.sessions().get(connection.slot); session != nullptr)
    SSL_set_session(ssl, session);
  return expected;
}

void note_peer(SSL* ssl, const Connection& connection, bool server, bool verifies, PeerInfo& peer) {
  const unsigned char* alpn = nullptr;
  unsigned n = 0;
  SSL_get0_alpn_selected(ssl, &alpn, &n);
  peer.tls = true;
  peer.alpn.assign(reinterpret_cast<const char*>(alpn), n);
  if (server) peer.sni = connection.sni;
  peer.cipher = SSL_CIPHER_standard_name(SSL_get_current_cipher(ssl));
  peer.tls_version = SSL_get_version(ssl);
  peer.tls_resumed = SSL_session_reused(ssl) == 1;
  X509* x = SSL_get0_peer_certificate(ssl);
  if (x != nullptr && SSL_get_verify_result(ssl) == X509_V_OK && (server || verifies))
    peer.subject = subject_of(x);
}

Failure explain_failure(SSL* ssl, const Connection& connection, bool server, const std::string& expected) {
  const unsigned long e = ERR_peek_error();
  const int reason = ERR_GET_LIB(e) == ERR_LIB_SSL ? ERR_GET_REASON(e) : 0;
  const long verify = SSL_get_verify_result(ssl);
  Failure f{Fault::tls_handshake, take_error("handshake failed")};
  if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED) {
    f.fault = server ? Fault::tls_client_cert : Fault::tls_verify;
    f.reason += std::string(": ") + X509_verify_cert_error_string(verify);
    if (verify == X509_V_ERR_HOSTNAME_MISMATCH || verify == X509_V_ERR_IP_ADDRESS_MISMATCH)
      f.reason += " (the certificate is not for " + expected + ")";
  } else if (reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE) {
    f = {Fault::tls_client_cert, "the client sent no certificate"};
  } else if (reason == SSL_R_NO_APPLICATION_PROTOCOL || reason == SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL) {
    f = {Fault::tls_no_protocol, "no application protocol (ALPN) in common"};
  } else if (reason == SSL_R_CALLBACK_FAILED && server && !connection.sni.empty()) {
    f.reason = "no certificate for this name";
  }
  return f;
}

std::string describe_peer(const char* protocol, const PeerInfo& peer, const Connection& connection,
                          bool server, const std::string& expected) {
  const std::string at = peer.remote.valid() ? peer.remote.text() : "peer";
  if (server)
    return std::string(protocol) + " from " + at + (connection.sni.empty() ? "" : " for " + connection.sni);
  return std::string(protocol) + " with " + (expected.empty() ? at : expected + " (" + at + ")");
}

}  // namespace twp::tls_detail
