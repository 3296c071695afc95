// Heads and trailers as the lines that nghttp3 takes. Reading them: http/field_section.h.
#pragma once

#include <nghttp3/nghttp3.h>

#include <span>

#include "http/head.h"

namespace twp::h3 {

/// Field lines ready to be submitted; views into the arena they were made in or into static text.
using EncodedFields = std::span<nghttp3_nv>;

/// The lines of a request, interim or final response head, copied into `arena`.
EncodedFields encode_head(const Head& head, Arena& arena) noexcept;
EncodedFields encode_trailers(const HeaderBlock& fields, Arena& arena) noexcept;

}  // namespace twp::h3
