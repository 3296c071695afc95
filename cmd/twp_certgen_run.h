// What twp-certgen does once its command line is understood.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace twp::certgen {

struct Arguments {
  std::string dir;  ///< the CA's directory
  std::string out;
  bool force = false;
  std::string name, key_type = "ecdsa-p256";  // ca
  int ca_days = 0, leaf_days = 0;
  std::vector<std::string> hosts;  // leaf
  bool client = false;
  std::vector<std::string> stores;  // trust, untrust
  std::string file;                 // show
  std::string cert, key, password;  // export
  bool p12 = false, der = false, legacy = false;
};

/// Each prints its result on standard output. The value is the exit status.
Result<int> make_ca(const Arguments&);
Result<int> make_leaf(const Arguments&);
Result<int> change_trust(const Arguments&, bool install);
Result<int> show(const Arguments&);
Result<int> export_file(const Arguments&);

}  // namespace twp::certgen
