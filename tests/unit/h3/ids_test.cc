// Connection IDs: every worker reads them, nobody else learns anything, and a reload leaves the old ones good.
#include <boost/test/unit_test.hpp>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "h3/quic_ids.h"

using namespace twp;

namespace {

std::string text(std::span<const std::uint8_t> o) {
  return {reinterpret_cast<const char*>(o.data()), o.size()};
}

std::string token_of(const QuicIds& ids, std::span<const std::uint8_t> cid) {
  const auto token = ids.reset_token(cid);
  return token ? text(*token) : std::string();
}

std::vector<std::byte> secret(char c) { return std::vector<std::byte>(32, static_cast<std::byte>(c)); }

}  // namespace

BOOST_AUTO_TEST_SUITE(quic_ids)

BOOST_AUTO_TEST_CASE(every_worker_reads_the_ids_of_all) {
  const QuicSecrets secrets = QuicSecrets::random();
  QuicIds reader(0, secrets);
  for (const unsigned w : {0u, 1u, 7u, 255u, 256u, 65535u}) {
    QuicIds maker(w, secrets);
    for (int i = 0; i < 20; ++i) {
      const auto cid = maker.make();
      BOOST_TEST(cid.size() == kCidLength);
      BOOST_REQUIRE(reader.worker_of(cid).has_value());
      BOOST_TEST(*reader.worker_of(cid) == w);
    }
  }
}

BOOST_AUTO_TEST_CASE(other_ids_are_not_ours) {
  QuicIds ids(3, QuicSecrets::random());
  QuicIds other(3, QuicSecrets::random());
  std::mt19937 random(1);
  for (int i = 0; i < 10000; ++i) {
    QuicIds::Id cid;
    for (auto& b : cid) b = static_cast<std::uint8_t>(random());
    BOOST_TEST(!ids.worker_of(cid).has_value());
  }
  BOOST_TEST(!ids.worker_of(other.make()).has_value());
  const auto cid = ids.make();
  BOOST_TEST(!ids.worker_of(std::span(cid).first(kCidLength - 1)).has_value());
  BOOST_TEST(!ids.worker_of({}).has_value());
}

// Each bit of it matters, those in clear too: nobody makes a second good one from a first.
BOOST_AUTO_TEST_CASE(a_changed_bit_makes_it_foreign) {
  QuicIds ids(3, QuicSecrets::random().rotated().rotated().rotated());  // all four keys are there
  for (std::size_t bit = 0; bit < kCidLength * 8; ++bit) {
    auto cid = ids.make();
    cid[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
    BOOST_TEST(!ids.worker_of(cid).has_value());
  }
}

// What an observer sees of one worker's IDs is noise: every bit but the keys' id is set in about half of them.
BOOST_AUTO_TEST_CASE(ids_look_random_and_never_repeat) {
  QuicIds ids(1, QuicSecrets::random());
  constexpr int kMany = 4000;
  std::set<std::string> seen;
  std::vector<int> ones(kCidLength * 8);
  for (int i = 0; i < kMany; ++i) {
    const auto cid = ids.make();
    seen.insert(text(cid));
    for (std::size_t bit = 0; bit < ones.size(); ++bit) ones[bit] += cid[bit / 8] >> (bit % 8) & 1;
  }
  BOOST_TEST(seen.size() == static_cast<std::size_t>(kMany));
  for (std::size_t bit = 0; bit < ones.size(); ++bit) {
    if (bit == 6 || bit == 7) continue;
    BOOST_TEST(ones[bit] > kMany * 44 / 100, "bit " << bit);
    BOOST_TEST(ones[bit] < kMany * 56 / 100, "bit " << bit);
  }
}

BOOST_AUTO_TEST_CASE(rotation_keeps_three_generations) {
  QuicSecrets secrets = QuicSecrets::random();
  QuicIds ids(5, secrets);
  const auto old = ids.make();
  const std::string token = token_of(ids, old);
  BOOST_TEST(token.size() == 16u);
  for (int i = 0; i < 3; ++i) {
    secrets = secrets.rotated();
    ids.rotate(secrets);
    BOOST_TEST(ids.worker_of(old).value_or(99) == 5u);
    BOOST_TEST(token_of(ids, old) == token);
    BOOST_TEST(ids.worker_of(ids.make()).value_or(99) == 5u);
  }
  ids.rotate(secrets.rotated());
  BOOST_TEST(!ids.worker_of(old).has_value());
  BOOST_TEST(token_of(ids, old) != token);
}

BOOST_AUTO_TEST_CASE(generations_are_counted_back_from_the_current) {
  const QuicSecrets first = QuicSecrets::random();
  BOOST_TEST(first.back(0) == &first.current());
  BOOST_TEST(first.back(1) == nullptr);
  BOOST_TEST(first.back(4) == nullptr);
  const QuicSecrets second = first.rotated();
  BOOST_TEST((second.back(1)->token == first.current().token));
  BOOST_TEST((second.back(0)->token != first.current().token));
  BOOST_TEST(second.back(2) == nullptr);
}

// A reset token is a function of the ID and the secret, so it is right on any worker and after a restart.
BOOST_AUTO_TEST_CASE(reset_tokens) {
  QuicIds one(1, QuicSecrets::from(secret('a')));
  QuicIds two(2, QuicSecrets::from(secret('a')));
  QuicIds foreign(1, QuicSecrets::from(secret('b')));
  const auto cid = one.make();
  BOOST_TEST(two.worker_of(cid).value_or(99) == 1u);
  BOOST_TEST(token_of(one, cid) == token_of(two, cid));
  BOOST_TEST(token_of(one, cid) != token_of(foreign, cid));
  BOOST_TEST(token_of(one, cid) != token_of(one, one.make()));
  BOOST_TEST(token_of(one, {}).empty());
  BOOST_TEST(token_of(one, std::vector<std::uint8_t>(21)).empty());
}

BOOST_AUTO_TEST_CASE(keys_of_one_secret_differ_by_use) {
  const QuicKeys k = QuicSecrets::from(secret('a')).current();
  BOOST_TEST((k.reset != k.token));
  BOOST_TEST(!std::equal(k.cid.begin(), k.cid.end(), k.reset.begin()));
  BOOST_TEST(!std::equal(k.cid.begin(), k.cid.end(), k.token.begin()));
  BOOST_TEST((QuicSecrets::from(secret('b')).current().cid != k.cid));
}

BOOST_AUTO_TEST_SUITE_END()
