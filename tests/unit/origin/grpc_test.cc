// gRPC: the framing, and the services through a stream in memory.
#include "origin/grpc.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "origin/grpc_call.h"
#include "site_fixture.h"

using namespace twp;
using namespace twp::origin;

namespace {

std::string message(std::string_view payload, char flag = 0) {
  const auto head = grpc::prefix(static_cast<std::uint32_t>(payload.size()));
  std::string out(reinterpret_cast<const char*>(head.data()), head.size());
  out[0] = flag;
  return out.append(payload);
}

struct Messages final : grpc::ReaderEvents {
  void on_message(std::span<const std::byte> octets, bool end) noexcept override {
    part.append(reinterpret_cast<const char*>(octets.data()), octets.size());
    if (!end) return;
    whole.push_back(part);
    part.clear();
  }
  std::vector<std::string> whole;
  std::string part;
};

std::span<const std::byte> octets(std::string_view text) { return std::as_bytes(std::span(text)); }

struct Calls {
  ~Calls() { worker.turn(Duration::zero()); }

  FakeStream& call(std::string_view path, std::string_view body, std::size_t piece = ~std::size_t{0}) {
    s.emplace(site);
    Head head = Head::request(Method::post, "http", "a.test", path, BodySize::unknown());
    head.fields.add(HeaderId::content_type, "application/grpc+proto");
    s->start(std::move(head), body.empty() ? End::yes : End::no);
    while (!body.empty() && !over()) {
      const std::string_view part = body.substr(0, piece);
      body.remove_prefix(part.size());
      s->upload(part, body.empty() ? End::yes : End::no);
    }
    s->leave();
    return *s;
  }
  /// The status has been sent: what else comes of the request is taken and thrown away.
  bool over() const { return s->ended; }
  std::string status() const {
    return s->trailers.empty() ? "none" : s->trailers.substr(0, s->trailers.find('\n'));
  }

  Worker worker;
  Site site{worker};
  std::optional<FakeStream> s;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(grpc_framing)

BOOST_AUTO_TEST_CASE(messages_come_out_however_the_octets_are_cut) {
  const std::string long_one(70'000, 'x');
  const std::string all = message("") + message("a") + message("") + message(long_one) + message("end");
  for (const std::size_t piece : {1u, 2u, 5u, 6u, 1000u, 100'000u}) {
    grpc::Reader reader;
    Messages m;
    for (std::size_t at = 0; at < all.size(); at += piece)
      BOOST_TEST((reader.feed(octets(std::string_view(all).substr(at, piece)), m) == grpc::Status::ok));
    BOOST_TEST((m.whole == std::vector<std::string>{"", "a", "", long_one, "end"}));
    BOOST_TEST(reader.between_messages());
    BOOST_TEST(reader.messages() == 5u);
  }
}

BOOST_AUTO_TEST_CASE(what_is_half_is_not_between_messages) {
  const std::string all = message("ab");
  for (std::size_t n = 1; n < all.size(); ++n) {
    grpc::Reader reader;
    Messages m;
    reader.feed(octets(std::string_view(all).substr(0, n)), m);
    BOOST_TEST(!reader.between_messages());
  }
}

BOOST_AUTO_TEST_CASE(defects_stay) {
  const auto status = [](const std::string& text, std::uint64_t max = grpc::kMaxMessage) {
    grpc::Reader reader;
    Messages m;
    const grpc::Status first = reader.feed(octets(text), m, max);
    BOOST_TEST((reader.feed(octets(message("good")), m, max) == first || first == grpc::Status::ok));
    return static_cast<int>(first);
  };
  BOOST_TEST(status(message("x", 1)) == 12);
  BOOST_TEST(status(message("x", 2)) == 13);
  BOOST_TEST(status(message("four"), 4) == 0);
  BOOST_TEST(status(message("fives"), 4) == 8);
}

BOOST_AUTO_TEST_CASE(content_types) {
  for (const char* good :
       {"application/grpc", "application/grpc+proto", "Application/GRPC;x=y", "application/grpc ;x"})
    BOOST_TEST(grpc::is_content_type(good), good);
  for (const char* bad : {"", "application/grp", "application/grpc-web", "application/json"})
    BOOST_TEST(!grpc::is_content_type(bad), bad);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_FIXTURE_TEST_SUITE(grpc_calls, Calls)

BOOST_AUTO_TEST_CASE(unary_and_bidi_echo) {
  const std::string big(100'000, 'y');
  for (const std::size_t piece : {1u, 7u, 100'000u}) {
    FakeStream& u = call("/twp.Echo/Unary", message(big), piece);
    BOOST_TEST(u.status == 200);
    BOOST_TEST(u.fields.find("content-type: application/grpc\n") != std::string::npos);
    BOOST_TEST(u.body == message(big));
    BOOST_TEST(status() == "grpc-status: 0");
    BOOST_TEST(u.credit == big.size() + 5);
    u.gone();
    FakeStream& b = call("/twp.Echo/BidiStream", message("one") + message("") + message("three"), piece);
    BOOST_TEST(b.body == message("one") + message("") + message("three"));
    BOOST_TEST(status() == "grpc-status: 0");
    b.gone();
  }
}

BOOST_AUTO_TEST_CASE(bidi_answers_before_the_request_is_over) {
  FakeStream b(site);
  Head head = Head::request(Method::post, "http", "a.test", "/twp.Echo/BidiStream", BodySize::unknown());
  head.fields.add(HeaderId::content_type, "application/grpc");
  b.start(std::move(head), End::no);
  BOOST_TEST(b.status == 200);
  b.upload(message("first"), End::no);
  BOOST_TEST(b.body == message("first"));
  BOOST_TEST(b.credit == 0u);  // not before it has left
  b.leave();
  BOOST_TEST(b.credit == 10u);
  b.upload({}, End::yes);
  BOOST_TEST(b.trailers == "grpc-status: 0\n");
  b.gone();
}

BOOST_AUTO_TEST_CASE(streams_of_one_side) {
  FakeStream& c = call("/twp.Echo/ClientStream", message("ab") + message("cd") + message("e"), 3);
  BOOST_TEST(c.body == message("abcde"));
  BOOST_TEST(status() == "grpc-status: 0");
  c.gone();
  FakeStream& none = call("/twp.Echo/ClientStream", "");
  BOOST_TEST(none.body == message(""));
  BOOST_TEST(status() == "grpc-status: 0");
  none.gone();
  std::string ten;
  for (unsigned i = 0; i < GrpcCall::kRepeats; ++i) ten += message("again");
  FakeStream& s10 = call("/twp.Echo/ServerStream", message("again"));
  BOOST_TEST(s10.body == ten);
  BOOST_TEST(status() == "grpc-status: 0");
  s10.gone();
}

BOOST_AUTO_TEST_CASE(repeats_wait_for_the_wire) {
  const std::string big(1'000'000, 'z');
  FakeStream w(site);
  Head head = Head::request(Method::post, "http", "a.test", "/twp.Echo/ServerStream", BodySize::unknown());
  head.fields.add(HeaderId::content_type, "application/grpc");
  w.start(std::move(head), End::no);
  w.upload(message(big), End::yes);
  BOOST_TEST(w.queued < 3'000'000u);
  BOOST_TEST(!w.ended);
  w.leave();
  BOOST_TEST(w.octets == GrpcCall::kRepeats * (big.size() + 5));
  BOOST_TEST(w.ended);
  w.gone();
}

BOOST_AUTO_TEST_CASE(defects_are_statuses) {
  const struct {
    const char* path;
    std::string body;
    const char* status;
  } cases[] = {
      {"/twp.Echo/Unary", message("a") + message("b"), "grpc-status: 12"},
      {"/twp.Echo/Unary", "", "grpc-status: 12"},
      {"/twp.Echo/Unary", message("abc").substr(0, 6), "grpc-status: 13"},
      {"/twp.Echo/Unary", message("abc", 1), "grpc-status: 12"},
      {"/twp.Echo/BidiStream", message("abc", 7), "grpc-status: 13"},
      {"/twp.Echo/ServerStream", message("a") + message("b"), "grpc-status: 12"},
      {"/twp.Echo/ClientStream", message("a") + "x", "grpc-status: 13"},
  };
  for (const auto& c : cases) {
    FakeStream& f = call(c.path, c.body);
    BOOST_TEST(f.status == 200);
    BOOST_TEST(status() == c.status, c.path << ": " << status());
    BOOST_TEST(f.ended);
    f.upload("whatever comes behind it", End::yes);
    f.gone();
  }
}

BOOST_AUTO_TEST_CASE(what_is_kept_is_bounded) {
  const std::string mebi(1024 * 1024, 'm');
  FakeStream& f =
      call("/twp.Echo/ClientStream",
           message(mebi) + message(mebi) + message(mebi) + message(mebi) + message("x"), kBlockSize);
  BOOST_TEST(status() == "grpc-status: 8");
  f.gone();
}

BOOST_AUTO_TEST_CASE(health) {
  const std::string serving = message(std::string_view("\x08\x01", 2));
  for (const std::string& request : {message(""), message(std::string("\x0a\x08twp.Echo"))}) {
    FakeStream& f = call("/grpc.health.v1.Health/Check", request);
    BOOST_TEST(f.body == serving);
    BOOST_TEST(status() == "grpc-status: 0");
    f.gone();
  }
  call("/grpc.health.v1.Health/Check", message(std::string("\x0a\x05other"))).gone();
  BOOST_TEST(status() == "grpc-status: 5");
  for (const std::string& bad : {std::string("\x0a"),
                                 std::string("\x0a\x09"
                                             "short"),
                                 std::string("\x10\x01")}) {
    call("/grpc.health.v1.Health/Check", message(bad)).gone();
    BOOST_TEST(status() == "grpc-status: 3");
  }
}

BOOST_AUTO_TEST_CASE(methods_that_are_not_there) {
  FakeStream& f = call("/twp.Echo/Nothing", message("x"));
  BOOST_TEST(f.status == 200);
  BOOST_TEST(f.fields.find("grpc-status: 12\n") != std::string::npos);
  BOOST_TEST(f.body == "");
  f.gone();
  // What is not gRPC gets what it always got.
  FakeStream plain(site);
  plain.request(Method::post, "/twp.Echo/Unary", "x");
  BOOST_TEST(plain.status == 404);
  plain.gone();
}

BOOST_AUTO_TEST_SUITE_END()
