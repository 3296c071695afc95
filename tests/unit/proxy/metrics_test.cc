#include "proxy/metrics.h"

#include <boost/test/unit_test.hpp>
#include <set>
#include <sstream>

using namespace twp;

BOOST_AUTO_TEST_SUITE(metrics)

BOOST_AUTO_TEST_CASE(labels_are_escaped) {
  BOOST_TEST(prometheus_label("a\\b\"c\nd") == "a\\\\b\\\"c\\nd");
  const std::string text = prometheus_text({}, {"1\"2", "c", 0});
  BOOST_TEST(text.find("twp_build_info{version=\"1\\\"2\",commit=\"c\"} 1\n") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(workers_are_summed) {
  std::vector<WorkerSample> workers(3);
  for (std::size_t i = 0; i < workers.size(); ++i) {
    workers[i].counters.requests = i + 1;
    workers[i].counters.responses[5] = 10;
    workers[i].counters.count(Fault::origin_reset);
    workers[i].client_connections = 2;
    workers[i].blocks_live = 1;
  }
  const std::string text = prometheus_text(workers, {"v", "c", 1'500'000'000});
  for (const char* line : {"\ntwp_workers 3\n", "\ntwp_requests_total 6\n", "\ntwp_responses_total{class=\"5xx\"} 30\n",
                           "\ntwp_exchange_ends_total{fault=\"origin-reset\"} 3\n", "\ntwp_exchange_ends_total{fault=\"ok\"} 0\n",
                           "\ntwp_client_connections 6\n", "\ntwp_block_bytes 49152\n", "\nprocess_start_time_seconds 1.500\n"})
    BOOST_TEST(text.find(line) != std::string::npos, line);
}

// HELP, then TYPE, then samples, once for each family; a series appears once.
BOOST_AUTO_TEST_CASE(families_are_whole) {
  std::istringstream in(prometheus_text(std::vector<WorkerSample>(1), {}));
  std::set<std::string> families, series;
  std::string family, line;
  while (std::getline(in, line)) {
    std::istringstream words(line);
    std::string first, second, third;
    words >> first >> second >> third;
    if (first == "#" && second == "HELP") {
      BOOST_TEST(families.insert(third).second, third << " twice");
      family = third;
    } else if (first == "#") {
      BOOST_TEST(second == "TYPE");
      BOOST_TEST(third == family);
    } else {
      BOOST_TEST(first.substr(0, first.find('{')) == family);
      BOOST_TEST(series.insert(first).second, first << " twice");
    }
  }
  BOOST_TEST(families.size() > 25U);
}

BOOST_AUTO_TEST_CASE(memory) {
  std::vector<WorkerSample> workers(2);
  workers[1].blocks_live = 7;
  workers[1].arena_live_bytes = 2048;
  workers[1].counters.slab_free_bytes = 512;
  const std::string json = memory_json(workers);
  BOOST_TEST(json.starts_with("{\"rss_bytes\":"));
  BOOST_TEST(json.find("\"workers\":[{\"blocks_live\":0,") != std::string::npos);
  BOOST_TEST(json.find(",{\"blocks_live\":7,") != std::string::npos);
  BOOST_TEST(json.find(",\"arena_live_bytes\":2048,\"arena_free_bytes\":0,\"slab_live_bytes\":0,\"slab_free_bytes\":512,") != std::string::npos);
  BOOST_TEST(json.ends_with("]}\n"));
}

BOOST_AUTO_TEST_SUITE_END()
