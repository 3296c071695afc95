// Result<T>: a value, or an Error that says what went wrong in words a person can act on.
//
// For what can fail *now* (start-up, configuration, parsing). Streams that fail *later* report a bare
// Fault through StreamEvents::on_gone. Code on the data path uses Fault alone and never builds text.
#pragma once

#include <expected>
#include <string>
#include <utility>

#include "base/fault.h"

namespace twp {

struct Error {
  Fault fault = Fault::internal;
  std::string what;  ///< one line: what is wrong, where, what to do; no trailing full stop or newline
};

template <class T>
using Result = std::expected<T, Error>;

/// `return fail(Fault::bad_config, "...")` from any function that returns Result<T>.
inline std::unexpected<Error> fail(Fault fault, std::string what) {
  return std::unexpected<Error>(Error{fault, std::move(what)});
}

/// The text of an errno value ("Connection refused"), thread-safe.
std::string errno_text(int err);

}  // namespace twp
