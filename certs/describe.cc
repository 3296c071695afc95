#include "certs/describe.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/bn.h>
#include <openssl/crypto.h>

#include <array>
#include <cstdio>
#include <ctime>

#include "certs/extension.h"
#include "certs/key.h"

namespace twp::certs {
namespace {

std::string hex(const unsigned char* bytes, std::size_t size, bool pretty) {
  const char* digits = pretty ? "0123456789ABCDEF" : "0123456789abcdef";
  std::string out;
  for (std::size_t i = 0; i < size; ++i) {
    if (pretty && i != 0) out += ':';
    out += digits[bytes[i] >> 4];
    out += digits[bytes[i] & 15];
  }
  return out;
}

std::string fingerprint(X509* x, bool pretty) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int size = 0;
  if (X509_digest(x, EVP_sha256(), digest.data(), &size) != 1) return "unknown";
  return hex(digest.data(), size, pretty);
}

std::string name_text(const X509_NAME* name) {
  if (X509_NAME_entry_count(name) == 0) return "(empty)";
  const BioPtr bio(BIO_new(BIO_s_mem()));
  // Everything RFC 4514 escapes, but UTF-8 stays readable.
  const unsigned long flags = XN_FLAG_RFC2253 & ~static_cast<unsigned long>(ASN1_STRFLGS_ESC_MSB);
  if (!bio || X509_NAME_print_ex(bio.get(), name, 0, flags) < 0) return "unknown";
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, static_cast<std::size_t>(size));
}

std::string time_text(const ASN1_TIME* t) {
  std::tm tm{};
  std::array<char, 64> out{};
  if (ASN1_TIME_to_tm(t, &tm) != 1) return "unknown";
  std::strftime(out.data(), out.size(), "%Y-%m-%d %H:%M:%S UTC", &tm);
  return out.data();
}

std::string printable(const ASN1_STRING* s) {
  std::string out;
  const unsigned char* bytes = ASN1_STRING_get0_data(s);
  for (int i = 0; i < ASN1_STRING_length(s); ++i) {
    if (bytes[i] >= 0x20 && bytes[i] < 0x7f) {
      out += static_cast<char>(bytes[i]);
    } else {
      out += "\\" + hex(bytes + i, 1, true);
    }
  }
  return out;
}

std::string ip_text(const ASN1_OCTET_STRING* s) {
  std::array<char, INET6_ADDRSTRLEN> out{};
  const int size = ASN1_STRING_length(s);
  if (size != 4 && size != 16) return "(" + std::to_string(size) + " bytes)";
  ::inet_ntop(size == 4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(s), out.data(), out.size());
  return out.data();
}

std::string general_name_text(const GENERAL_NAME* gn) {
  switch (gn->type) {
    case GEN_DNS: return "DNS:" + printable(gn->d.dNSName);
    case GEN_IPADD: return "IP:" + ip_text(gn->d.iPAddress);
    case GEN_URI: return "URI:" + printable(gn->d.uniformResourceIdentifier);
    case GEN_EMAIL: return "email:" + printable(gn->d.rfc822Name);
    case GEN_DIRNAME: return "DirName:" + name_text(gn->d.directoryName);
    default: return "(another kind)";
  }
}

std::vector<std::string> alt_names(X509* x) {
  std::vector<std::string> out;
  const GeneralNamesPtr all(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(x, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; all && i < sk_GENERAL_NAME_num(all.get()); ++i) {
    out.push_back(general_name_text(sk_GENERAL_NAME_value(all.get(), i)));
  }
  return out;
}

std::string days_text(long days) { return std::to_string(days) + (days == 1 ? " day" : " days"); }

std::string validity_text(X509* x) {
  int days = 0, seconds = 0;
  if (X509_cmp_current_time(X509_get0_notBefore(x)) > 0) return "not valid yet";
  if (ASN1_TIME_diff(&days, &seconds, nullptr, X509_get0_notAfter(x)) != 1) return "unknown";
  if (days < 0 || seconds < 0) return "expired " + days_text(-days) + " ago";
  return "valid, " + days_text(days) + " left";
}

std::string serial_text(X509* x) {
  const OpensslPtr<BIGNUM, BN_free> number(ASN1_INTEGER_to_BN(X509_get0_serialNumber(x), nullptr));
  char* text = number ? BN_bn2hex(number.get()) : nullptr;
  std::string out = text != nullptr ? text : "unknown";
  OPENSSL_free(text);
  return out;
}

}  // namespace

std::string fingerprint(X509* x) { return fingerprint(x, false); }

Description describe(X509* x) {
  Description d;
  d.subject = name_text(X509_get_subject_name(x));
  d.issuer = name_text(X509_get_issuer_name(x));
  d.serial = serial_text(x);
  d.names = alt_names(x);
  d.not_before = time_text(X509_get0_notBefore(x));
  d.not_after = time_text(X509_get0_notAfter(x));
  d.fingerprint = fingerprint(x, true);
  d.key = describe_key(X509_get0_pubkey(x));
  d.ca = (X509_get_extension_flags(x) & EXFLAG_CA) != 0;
  d.self_issued = (X509_get_extension_flags(x) & EXFLAG_SI) != 0;
  d.validity = validity_text(x);
  openssl_reason("");  // odd certificates leave entries in the queue
  return d;
}

std::string to_text(const Description& d) {
  std::string names;
  for (const std::string& name : d.names) names += (names.empty() ? "" : ", ") + name;
  return "Subject:      " + d.subject + "\n" +                                         //
         "Issuer:       " + d.issuer + (d.self_issued ? " (itself)" : "") + "\n" +     //
         "Names (SAN):  " + (names.empty() ? "none" : names) + "\n" +                  //
         "Not before:   " + d.not_before + "\n" +                                      //
         "Not after:    " + d.not_after + " (" + d.validity + ")\n" +                  //
         "Key:          " + d.key + "\n" +                                             //
         "CA:           " + (d.ca ? "yes" : "no") + "\n" +                             //
         "Serial:       " + d.serial + "\n" +                                          //
         "SHA-256:      " + d.fingerprint + "\n";
}

}  // namespace twp::certs
