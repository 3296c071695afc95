// Internationalised host names: U-labels, as people type them, to A-labels, as certificates carry them.
//
// The mapping is a strict part of UTS #46 (non-transitional): letters are lower-cased and the three
// ideographic full stops separate labels. Only code points of the scripts in kAllowed (idna.cc) that are
// valid as they stand are taken. Whatever UTS #46 would first have to compose, decompose or fold (combining
// accents, ligatures, full-width letters) and every other script is refused with a request for
// the A-label, because a wrong guess here would name a different host. Bidi and joining rules
// (RFC 5893, RFC 5892 App. A) are a registry's business and not checked.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace twp::certs {

/// Strict UTF-8 (RFC 3629): no overlong form, no surrogate, nothing above U+10FFFF.
Result<std::u32string> decode_utf8(std::string_view text);

/// Punycode without the "xn--" prefix (RFC 3492 §6.3). Fails only on arithmetic overflow, which needs
/// an input far longer than any label.
Result<std::string> punycode(std::span<const char32_t> label);

/// A whole host name in UTF-8 to lower-case ASCII: each label with a non-ASCII character becomes
/// "xn--" + punycode, ASCII labels are lower-cased and otherwise kept, A-labels included. Lengths and
/// the characters of ASCII labels are not checked here (see parse_name).
Result<std::string> to_ascii(std::string_view host);

}  // namespace twp::certs
