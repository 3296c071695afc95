#include "proxy/generated_response.h"

#include <array>
#include <string>

#include "base/ascii.h"

namespace twp {
namespace {

struct Texts {
  std::string body;
  std::string length;
  std::string proxy_status;
  std::string grpc_status;
  std::string grpc_message;
};

/// Made once for every row of fault.def; read-only afterwards.
const Texts& texts(Fault why) {
  static const auto all = [] {
    std::array<Texts, static_cast<std::size_t>(Fault::count_)> out;
    for (std::size_t i = 0; i < out.size(); ++i) {
      const FaultInfo& row = info(static_cast<Fault>(i));
      if (row.http_status == 0) continue;
      out[i].body = std::to_string(row.http_status) + ' ' + std::string(reason_phrase(row.http_status)) + " (" +
                    std::string(row.log_word) + ")\n";
      out[i].length = std::to_string(out[i].body.size());
      out[i].proxy_status = "twp; error=" + std::string(proxy_error_type(static_cast<Fault>(i))) + "; details=\"" +
                            std::string(row.log_word) + '"';
      out[i].grpc_status = std::to_string(grpc_status(static_cast<Fault>(i)));
      // Printable ASCII without '%' needs no encoding.
      out[i].grpc_message = out[i].body.substr(0, out[i].body.size() - 1);
    }
    return out;
  }();
  return all[static_cast<std::size_t>(why)];
}

}  // namespace

std::string_view proxy_error_type(Fault why) noexcept {
  switch (why) {
    case Fault::dns_failed: return "dns_error";
    case Fault::connect_refused: return "connection_refused";
    case Fault::connect_failed: return "destination_ip_unroutable";
    case Fault::connect_timeout: return "connection_timeout";
    case Fault::queue_timeout:
    case Fault::queue_full: return "connection_limit_reached";
    case Fault::no_origin:
    case Fault::draining:
    case Fault::shutdown: return "destination_unavailable";
    case Fault::origin_closed:
    case Fault::origin_reset:
    case Fault::origin_stream_reset:
    case Fault::origin_refused_stream: return "connection_terminated";
    case Fault::origin_truncated: return "http_response_incomplete";
    case Fault::origin_bad_head:
    case Fault::origin_bad_framing: return "http_protocol_error";
    case Fault::origin_head_too_large: return "http_response_header_section_size";
    case Fault::origin_timeout: return "http_response_timeout";
    case Fault::tls_handshake:
    case Fault::tls_no_protocol:
    case Fault::tls_truncated: return "tls_protocol_error";
    case Fault::origin_no_tunnel: return "http_upgrade_failed";
    case Fault::tls_verify: return "tls_certificate_error";
    case Fault::loop_detected: return "proxy_loop_detected";
    case Fault::not_found: return "destination_not_found";
    case Fault::forbidden: return "http_request_denied";
    default: break;
  }
  return info(why).http_status / 100 == 4 ? "http_request_error" : "proxy_internal_error";
}

unsigned grpc_status(Fault why) noexcept {
  enum : unsigned { unknown = 2, deadline_exceeded = 4, permission_denied = 7, resource_exhausted = 8, unimplemented = 12, internal = 13, unavailable = 14 };
  if (why == Fault::connect_timeout) return unavailable;  // not the call's time ran out: nobody is there
  switch (info(why).http_status) {
    case 400:
    case 500:
    case 508: return internal;
    case 403: return permission_denied;
    case 404:
    case 405:
    case 501: return unimplemented;
    case 408:
    case 504: return deadline_exceeded;
    case 413:
    case 414:
    case 431: return resource_exhausted;
    case 421:
    case 502:
    case 503: return unavailable;
    default: return unknown;
  }
}

namespace {

GeneratedResponse trailers_only(const Texts& t, const Head& request) {
  GeneratedResponse out{Head::response(200), {}};
  HeaderBlock& fields = out.head.fields;
  fields.add(HeaderId::content_type, request.fields.get(HeaderId::content_type));
  fields.add_view(HeaderId::grpc_status, "Grpc-Status", t.grpc_status);
  fields.add_view(HeaderId::grpc_message, "Grpc-Message", t.grpc_message);
  fields.add_view(HeaderId::other, "Proxy-Status", t.proxy_status);
  return out;
}

}  // namespace

GeneratedResponse generate_response(Fault why, const Head& request) {
  const FaultInfo& row = info(why);
  const Texts& t = texts(why);
  if (is_grpc(request)) return trailers_only(t, request);
  GeneratedResponse out{Head::response(row.http_status), {}};
  HeaderBlock& fields = out.head.fields;
  fields.add_view(HeaderId::content_type, "Content-Type", "text/plain; charset=utf-8");
  fields.add_view(HeaderId::content_length, "Content-Length", t.length);
  fields.add_view(HeaderId::cache_control, "Cache-Control", "no-store");
  fields.add_view(HeaderId::other, "Proxy-Status", t.proxy_status);
  // RFC 9110 §15.5.6 wants Allow; CONNECT is what is refused.
  if (row.http_status == 405)
    fields.add_view(HeaderId::allow, "Allow", "GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH");
  if (request.method != Method::head) {
    out.body = t.body;
    out.head.body = BodySize::exactly(t.body.size());
  }
  return out;
}

}  // namespace twp
