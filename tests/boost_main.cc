// The one main() that every Boost.Test executable links.
#define BOOST_TEST_MODULE twp
#include <boost/test/unit_test.hpp>
