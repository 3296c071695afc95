// What a gRPC client is told when there is no response to pass on.
#include <boost/test/unit_test.hpp>

#include "proxy/generated_response.h"
#include "support/playbook.h"

using namespace twp;
using namespace twp::test;

namespace {

Head call(std::string_view type = "application/grpc") {
  return request_head("POST", "/pkg.Service/Method", BodySize::unknown(),
                      {{"content-type", type}, {"te", "trailers"}}, {2, 0});
}

struct Row {
  Fault fault;
  std::string_view status;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(grpc)

BOOST_AUTO_TEST_CASE(a_failure_is_a_status_in_a_response_without_body) {
  Playbook play;
  play.request(call(), End::no);
  play.client().deliver_body("message", End::yes);
  play.connector.fail(Fault::connect_refused);
  const Head& h = play.client().head;
  BOOST_TEST(h.status == 200);
  BOOST_TEST(h.fields.get(HeaderId::content_type) == "application/grpc");
  BOOST_TEST(h.fields.get("grpc-status") == "14");
  BOOST_TEST(h.fields.get("grpc-message") == "502 Bad Gateway (connect-refused)");
  BOOST_TEST(!h.fields.has(HeaderId::content_length));
  BOOST_TEST(play.client().body == "");
  BOOST_TEST(play.client().ended);
  BOOST_TEST(play.settle());
  BOOST_CHECK(play.done.fault == Fault::connect_refused);
  BOOST_TEST(play.done.generated);
}

BOOST_AUTO_TEST_CASE(each_kind_of_failure_has_its_code) {
  const Row rows[] = {
      {Fault::bad_request, "13"},      {Fault::forbidden, "7"},       {Fault::not_found, "12"},
      {Fault::origin_no_tunnel, "12"}, {Fault::body_timeout, "4"},    {Fault::origin_timeout, "4"},
      {Fault::connect_timeout, "14"},  {Fault::connect_failed, "14"}, {Fault::dns_failed, "14"},
      {Fault::tls_verify, "14"},       {Fault::origin_closed, "14"},  {Fault::origin_refused_stream, "14"},
      {Fault::queue_full, "14"},       {Fault::no_origin, "14"},      {Fault::overloaded, "14"},
      {Fault::body_too_large, "8"},    {Fault::head_too_large, "8"},  {Fault::internal, "13"},
      {Fault::expectation, "2"},
  };
  for (const Row& row : rows) {
    const GeneratedResponse r = generate_response(row.fault, call());
    BOOST_TEST(r.head.fields.get("grpc-status") == row.status, log_word(row.fault));
    BOOST_TEST(r.head.status == 200);
    BOOST_TEST(r.body == "");
  }
}

BOOST_AUTO_TEST_CASE(which_requests_are_calls) {
  for (const auto& [type, is] : {std::pair("application/grpc", true),
                                 {"application/grpc+proto", true},
                                 {"Application/GRPC", true},
                                 {"application/grpc-web", true},
                                 {"application/grpc; charset=x", true},
                                 {"application/grpcish", false},
                                 {"application/json", false},
                                 {"text/application/grpc", false}}) {
    BOOST_TEST(is_grpc(call(type)) == is, type);
    BOOST_TEST(generate_response(Fault::no_origin, call(type)).head.status == (is ? 200 : 503));
  }
  BOOST_TEST(!is_grpc(request_head("GET", "/")));
}

BOOST_AUTO_TEST_CASE(te_trailers_reaches_the_origin) {
  Playbook play;
  play.request(call(), End::no);
  play.connect(100);
  BOOST_TEST(play.origin().head.fields.get(HeaderId::te) == "trailers");
  BOOST_TEST(play.origin().head.fields.get(HeaderId::via) == "2.0 twp-0badcafe");
}

BOOST_AUTO_TEST_SUITE_END()
