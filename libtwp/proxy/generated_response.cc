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
    case Fault::origin_refused_stream: return "connection_terminated";
    case Fault::origin_truncated: return "http_response_incomplete";
    case Fault::origin_bad_head:
    case Fault::origin_bad_framing: return "http_protocol_error";
    case Fault::origin_head_too_large: return "http_response_header_section_size";
    case Fault::origin_timeout: return "http_response_timeout";
    case Fault::tls_handshake:
    case Fault::tls_no_protocol:
    case Fault::tls_truncated: return "tls_protocol_error";
    case Fault::tls_verify: return "tls_certificate_error";
    case Fault::loop_detected: return "proxy_loop_detected";
    case Fault::not_found: return "destination_not_found";
    case Fault::forbidden: return "http_request_denied";
    default: break;
  }
  return info(why).http_status / 100 == 4 ? "http_request_error" : "proxy_internal_error";
}

GeneratedResponse generate_response(Fault why, Method method) {
  const FaultInfo& row = info(why);
  const Texts& t = texts(why);
  GeneratedResponse out{Head::response(row.http_status), {}};
  HeaderBlock& fields = out.head.fields;
  fields.add_view(HeaderId::content_type, "Content-Type", "text/plain; charset=utf-8");
  fields.add_view(HeaderId::content_length, "Content-Length", t.length);
  fields.add_view(HeaderId::cache_control, "Cache-Control", "no-store");
  fields.add_view(HeaderId::other, "Proxy-Status", t.proxy_status);
  // RFC 9110 §15.5.6 wants Allow; CONNECT is what is refused.
  if (row.http_status == 405)
    fields.add_view(HeaderId::allow, "Allow", "GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH");
  if (method != Method::head) {
    out.body = t.body;
    out.head.body = BodySize::exactly(t.body.size());
  }
  return out;
}

}  // namespace twp
