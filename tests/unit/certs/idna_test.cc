#include "certs/idna.h"

#include "unit/certs/certs_support.h"

namespace twp::certs::test {

BOOST_AUTO_TEST_SUITE(idna)

BOOST_AUTO_TEST_CASE(punycode_samples_of_rfc_3492) {
  struct Sample {
    std::u32string label;
    std::string encoded;
  };
  // RFC 3492 §7.1 (A) to (S); capitals in the samples stand for mixed-case annotation, which is not done.
  const std::vector<Sample> samples{
      {U"\u0644\u064A\u0647\u0645\u0627\u0628\u062A\u0643\u0644\u0645\u0648\u0634\u0639\u0631\u0628\u064A\u061F",
       "egbpdaj6bu4bxfgehfvwxn"},
      {U"\u4ED6\u4EEC\u4E3A\u4EC0\u4E48\u4E0D\u8BF4\u4E2D\u6587", "ihqwcrb4cv8a8dqg056pqjye"},
      {U"\u4ED6\u5011\u7232\u4EC0\u9EBD\u4E0D\u8AAA\u4E2D\u6587", "ihqwctvzc91f659drss3x8bo0yb"},
      {U"Pro\u010Dprost\u011Bnemluv\u00ED\u010Desky", "Proprostnemluvesky-uyb24dma41a"},
      {U"\u05DC\u05DE\u05D4\u05D4\u05DD\u05E4\u05E9\u05D5\u05D8\u05DC\u05D0\u05DE\u05D3\u05D1\u05E8\u05D9\u05DD"
       U"\u05E2\u05D1\u05E8\u05D9\u05EA",
       "4dbcagdahymbxekheh6e0a7fei0b"},
      {U"\u306A\u305C\u307F\u3093\u306A\u65E5\u672C\u8A9E\u3092\u8A71\u3057\u3066\u304F\u308C\u306A\u3044\u306E\u304B",
       "n8jok5ay5dzabd5bym9f0cm5685rrjetr6pdxa"},
      {U"\u043F\u043E\u0447\u0435\u043C\u0443\u0436\u0435\u043E\u043D\u0438\u043D\u0435\u0433\u043E\u0432\u043E\u0440"
       U"\u044F\u0442\u043F\u043E\u0440\u0443\u0441\u0441\u043A\u0438",
       "b1abfaaepdrnnbgefbadotcwatmq2g4l"},
      {U"Porqu\u00E9nopuedensimplementehablarenEspa\u00F1ol", "PorqunopuedensimplementehablarenEspaol-fmd56a"},
      {U"3\u5E74B\u7D44\u91D1\u516B\u5148\u751F", "3B-ww4c5e180e575a65lsy2b"},
      {U"\u5B89\u5BA4\u5948\u7F8E\u6075-with-SUPER-MONKEYS", "-with-SUPER-MONKEYS-pc58ag80a8qai00g7n9n"},
      {U"Hello-Another-Way-\u305D\u308C\u305E\u308C\u306E\u5834\u6240", "Hello-Another-Way--fc4qua05auwb3674vfr0b"},
      {U"\u3072\u3068\u3064\u5C4B\u6839\u306E\u4E0B2", "2-u9tlzr9756bt3uc0v"},
      {U"\u305D\u306E\u30B9\u30D4\u30FC\u30C9\u3067", "d9juau41awczczp"},
      {U"-> $1.00 <-", "-> $1.00 <--"},
  };
  for (const Sample& s : samples) BOOST_TEST(must(punycode(s.label)) == s.encoded);
}

BOOST_AUTO_TEST_CASE(u_labels_become_a_labels) {
  BOOST_TEST(must(to_ascii("bücher.a.test")) == "xn--bcher-kva.a.test");
  BOOST_TEST(must(to_ascii("BÜCHER.A.TEST")) == "xn--bcher-kva.a.test");
  BOOST_TEST(must(to_ascii("faß.de")) == "xn--fa-hia.de");  // non-transitional: not "fass"
  BOOST_TEST(must(to_ascii("ПРЕЗИДЕНТ.РФ")) == "xn--d1abbgf6aiiy.xn--p1ai");
  BOOST_TEST(must(to_ascii("ΒΌΛΟΣ.com")) == must(to_ascii("βόλοσ.com")));
  BOOST_TEST(must(to_ascii("βόλος.com")) == "xn--nxasmm1c.com");
  BOOST_TEST(must(to_ascii("Źdźbło.pl")) == must(to_ascii("źdźbło.pl")));
  BOOST_TEST(must(to_ascii("ĀĹŸẾ.vn")) == must(to_ascii("āĺÿế.vn")));
  BOOST_TEST(must(to_ascii("例え。テスト")) == "xn--r8jz45g.xn--zckzah");
  BOOST_TEST(must(to_ascii("한국.kr")) == "xn--3e0b707e.kr");
  BOOST_TEST(must(to_ascii("💩.la")) == "xn--ls8h.la");
}

BOOST_AUTO_TEST_CASE(ascii_and_a_labels_pass_as_they_are) {
  BOOST_TEST(must(to_ascii("xn--bcher-kva.a.test")) == "xn--bcher-kva.a.test");
  BOOST_TEST(must(to_ascii("XN--BCHER-KVA.a.test")) == "xn--bcher-kva.a.test");
  BOOST_TEST(must(to_ascii("r3---sn-x.a.test")) == "r3---sn-x.a.test");
}

BOOST_AUTO_TEST_CASE(what_would_need_tables_is_refused_with_advice) {
  for (const char* host :
       {"bu\u0308cher.test", "ﬁ.test", "ａ.test", "İ.test", "ŉ.test", "ſ.test", "a\u200Db.test", "a\u00ADb.test",
        "a\u00A0b.test", "ÿ×.test", "\u2028.test", "ᎠB.test", "\uFEFFa.test", "GROẞ.test", "ӀA.test",
        "\u0E31a.test", "a.\u0940x.test"}) {
    const auto r = to_ascii(host);
    BOOST_TEST(!r, host);
    BOOST_TEST(contains(error_of(r), "xn--"), error_of(r));
  }
}

BOOST_AUTO_TEST_CASE(bad_utf8_is_refused) {
  const std::vector<std::string> bad{"\x80", "\xc3", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                                     "\xf8\x88\x80\x80\x80", "\xff", "a\xc3(", "\xe2\x82", "\xf0\x9f\x92"};
  for (const std::string& text : bad) {
    BOOST_TEST(!decode_utf8(text));
    BOOST_TEST(contains(error_of(to_ascii(text)), "not valid UTF-8 at byte"));
  }
  BOOST_TEST(must(decode_utf8("a\u00E9\u20AC\U0001F4A9")).size() == 4u);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace twp::certs::test
