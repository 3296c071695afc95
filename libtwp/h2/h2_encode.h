// Heads and trailers as the lines that nghttp2 takes. Reading them: http/field_section.h.
#pragma once

#include <nghttp2/nghttp2.h>

#include <span>

#include "http/head.h"

namespace twp::h2 {

/// Field lines ready to be submitted; views into the arena they were made in, into static text or into nothing.
using EncodedFields = std::span<nghttp2_nv>;

/// The lines of a request, interim or final response head, copied into `arena`.
EncodedFields encode_head(const Head& head, Arena& arena) noexcept;
EncodedFields encode_trailers(const HeaderBlock& fields, Arena& arena) noexcept;

}  // namespace twp::h2
