// A CA and one leaf for the loopback address and a.test, made once for the process and removed at its end.
#pragma once

#include <string>

namespace twp::test {

struct TestPki {
  std::string ca, cert, key;  ///< PEM files
};

/// Aborts with a message when they cannot be made.
const TestPki& test_pki();

}  // namespace twp::test
