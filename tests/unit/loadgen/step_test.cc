#include "loadgen/step.h"

#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "loadgen/report.h"

using namespace twp;
using namespace twp::load;

namespace {

struct TempFile {
  std::string path = "/tmp/twp-step-test-XXXXXX";
  TempFile() {
    const int fd = ::mkstemp(path.data());
    BOOST_REQUIRE(fd >= 0);
    ::close(fd);
  }
  ~TempFile() { std::remove(path.c_str()); }
  std::string text() const {
    std::ostringstream out;
    out << std::ifstream(path).rdbuf();
    return out.str();
  }
};

Step sample_step() {
  Step s;
  s.concurrency = 8;
  s.connections = 8;
  s.threads = 1;
  s.warmup_s = 2;
  s.duration_s = 4;
  s.counters.requests = 1000;
  s.counters.octets = 4 * 1024 * 1024;
  s.counters.failures[static_cast<std::size_t>(Failure::status)] = 2;
  for (unsigned i = 1; i <= 998; ++i) s.counters.latency.record_us(100);
  s.own_cpu_ns = 10'000'000;
  s.usage = {{"proxy", 20'000'000, 5'000'000, false}, {"origin", 8'000'000, 1, false}};
  s.utc = "2026-01-31T12:00:00.000Z";
  return s;
}

Plan sample_plan() {
  Plan p;
  p.url = *config::parse_url("http://127.0.0.1:1/");
  p.limit_us = 18;
  p.product = "a,\"b\"";
  return p;
}

std::string cell(const Row& row, std::string_view column) {
  for (std::size_t i = 0; i < kColumns.size(); ++i)
    if (kColumns[i] == column) return row[i].text;
  return "no such column";
}

}  // namespace

BOOST_AUTO_TEST_SUITE(step)

BOOST_AUTO_TEST_CASE(the_header_is_the_contract) {
  BOOST_TEST(csv_header() ==
             "run_id,commit,utc,host,cores,arm,mode,client,origin,product,version,repeat,concurrency,connections,warmup_s,"
             "duration_s,requests,errors,error_rate,rps,goodput_mib_s,p50_us,p90_us,p99_us,p999_us,max_us,slo_p99_us,slo_pass,"
             "proxy_rss_peak_bytes,proxy_cpu_avg_pct,proxy_cpu_us_per_req,origin_cpu_us_per_req,loadgen_cpu_us_per_req,"
             "limit_ratio\n");
}

BOOST_AUTO_TEST_CASE(a_row_holds_what_was_measured) {
  const Row row = make_row(sample_plan(), sample_step());
  BOOST_TEST(cell(row, "requests") == "1000");
  BOOST_TEST(cell(row, "errors") == "2");
  BOOST_TEST(cell(row, "error_rate") == "0.002000");
  BOOST_TEST(cell(row, "rps") == "249.5");  // right answers only
  BOOST_TEST(cell(row, "goodput_mib_s") == "1.000");
  BOOST_TEST(cell(row, "p99_us") == "100");
  BOOST_TEST(cell(row, "slo_pass") == "false");  // 0.2 % of errors
  BOOST_TEST(cell(row, "proxy_rss_peak_bytes") == "5000000");
  BOOST_TEST(cell(row, "proxy_cpu_avg_pct") == "0.5");
  BOOST_TEST(cell(row, "proxy_cpu_us_per_req") == "20.000");
  BOOST_TEST(cell(row, "origin_cpu_us_per_req") == "8.000");
  BOOST_TEST(cell(row, "loadgen_cpu_us_per_req") == "10.000");
  BOOST_TEST(cell(row, "limit_ratio") == "1.111");
}

BOOST_AUTO_TEST_CASE(what_was_not_watched_stays_empty) {
  Step s = sample_step();
  s.usage.clear();
  const Row row = make_row(sample_plan(), s);
  for (const char* name : {"proxy_rss_peak_bytes", "proxy_cpu_avg_pct", "proxy_cpu_us_per_req", "origin_cpu_us_per_req", "limit_ratio"})
    BOOST_TEST(cell(row, name) == "");
}

BOOST_AUTO_TEST_CASE(csv_is_quoted_and_appended) {
  const TempFile file;
  const Row row = make_row(sample_plan(), sample_step());
  BOOST_TEST(csv_line(row).find(",\"a,\"\"b\"\"\",") != std::string::npos);
  BOOST_TEST(append_csv(file.path, {row}).has_value());
  BOOST_TEST(append_csv(file.path, {row, row}).has_value());
  BOOST_TEST(file.text() == csv_header() + csv_line(row) + csv_line(row) + csv_line(row));
}

BOOST_AUTO_TEST_CASE(another_file_is_left_alone) {
  const TempFile file;
  std::ofstream(file.path) << "something else\n";
  const auto r = append_csv(file.path, {make_row(sample_plan(), sample_step())});
  BOOST_TEST(!r.has_value());
  BOOST_TEST(file.text() == "something else\n");
  BOOST_TEST(!append_csv("/nonexistent/x.csv", {}).has_value());
}

BOOST_AUTO_TEST_CASE(json_has_every_column) {
  const std::string text = json_step(sample_plan(), sample_step());
  for (const auto name : kColumns) BOOST_TEST(text.find('"' + std::string(name) + "\":") != std::string::npos, name);
  BOOST_TEST(text.find(R"("product":"a,\"b\"")") != std::string::npos);
  BOOST_TEST(text.find("\"requests\":1000,") != std::string::npos);
  Step bare = sample_step();
  bare.usage.clear();
  BOOST_TEST(json_step(sample_plan(), bare).find("\"limit_ratio\":null") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(sustain_is_the_last_step_that_held) {
  Plan plan = sample_plan();
  plan.slo.errors = 0.01;
  std::vector<Step> steps(3, sample_step());
  steps[1].counters.requests = 2000;
  steps[2].counters.failures[0] = 500;
  steps[0].concurrency = 1, steps[1].concurrency = 2, steps[2].concurrency = 3;
  BOOST_TEST(sustained(plan, steps)->concurrency == 2u);
  BOOST_TEST(peak(steps)->concurrency == 2u);
  plan.slo.p99_us = 1;
  BOOST_TEST(sustained(plan, steps) == nullptr);
}

BOOST_AUTO_TEST_CASE(the_exit_status_says_whether_every_step_met_the_slo) {
  Plan plan = sample_plan();
  plan.slo.errors = 0.01;
  std::vector<Step> steps(3, sample_step());
  BOOST_TEST(exit_status(plan, {}) == 1);
  BOOST_TEST(exit_status(plan, steps) == 0);
  plan.slo.given = true;
  BOOST_TEST(exit_status(plan, steps) == 0);
  for (Step& missed : steps) {  // whichever it is
    missed.counters.failures[0] = 20;
    BOOST_TEST(exit_status(plan, steps) == 3);
    missed = sample_step();
    for (int i = 0; i < 100; ++i) missed.counters.latency.record_us(1'000'000);
    BOOST_TEST(exit_status(plan, steps) == 3);
    missed = sample_step();
  }
  // Interrupted before its first answer: not measured, so nothing was missed.
  steps[2].counters = Counters();
  BOOST_TEST(exit_status(plan, steps) == 3);
  steps[2].interrupted = true;
  BOOST_TEST(exit_status(plan, steps) == 0);
  BOOST_TEST(exit_status(plan, {steps[2]}) == 1);
  // Nothing went right, and no SLO was asked for.
  Step all_wrong = sample_step();
  all_wrong.counters.failures[0] = 1000;
  plan.slo.given = false;
  BOOST_TEST(exit_status(plan, {all_wrong}) == 1);
  BOOST_TEST(exit_status(plan, {all_wrong, sample_step()}) == 0);
}

BOOST_AUTO_TEST_CASE(counters_merge) {
  Counters a = sample_step().counters;
  Counters b = sample_step().counters;
  b.first_error = "x";
  a.merge(b);
  BOOST_TEST(a.requests == 2000u);
  BOOST_TEST(a.errors() == 4u);
  BOOST_TEST(a.latency.count() == 1996u);
  BOOST_TEST(a.first_error == "x");
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(sampler)

BOOST_AUTO_TEST_CASE(a_tree_counts_with_its_descendants) {
  int up[2];
  BOOST_REQUIRE(::pipe(up) == 0);
  // Parent sleeps; its child burns 60 ms of CPU, holds 24 MiB and sleeps.
  const pid_t root = ::fork();
  if (root == 0) {
    if (::fork() == 0) {
      std::string memory(24 * 1024 * 1024, 'x');
      const std::clock_t begin = std::clock();
      while (std::clock() - begin < CLOCKS_PER_SEC * 60 / 1000) {
      }
      [[maybe_unused]] const auto n = ::write(up[1], memory.data() + memory.size() / 2, 1);
      for (;;) ::pause();
    }
    for (;;) ::pause();
  }
  BOOST_REQUIRE(root > 0);
  auto s = Sampler::create({{"proxy", root}});
  BOOST_REQUIRE(s.has_value());
  s->begin();
  char c;
  BOOST_REQUIRE(::read(up[0], &c, 1) == 1);
  s->sample();
  s->end();
  const Sampler::Usage* u = s->find("proxy");
  BOOST_REQUIRE(u != nullptr);
  BOOST_TEST(u->rss_peak_bytes >= 24u * 1024 * 1024);
  BOOST_TEST(!u->lost);
  const TreeUsage now = tree_usage(root);
  BOOST_TEST(now.processes == 2u);
  BOOST_TEST(now.cpu_ns >= 55'000'000u);
  BOOST_TEST(now.cpu_ns < 5'000'000'000u);
  BOOST_TEST(s->find("origin") == nullptr);
  std::ifstream children("/proc/" + std::to_string(root) + "/task/" + std::to_string(root) + "/children");
  int child = 0;
  children >> child;
  if (child > 0) ::kill(child, SIGKILL);
  ::kill(root, SIGKILL);
  ::waitpid(root, nullptr, 0);
  s->sample();
  BOOST_TEST(s->find("proxy")->lost);
  ::close(up[0]);
  ::close(up[1]);
}

BOOST_AUTO_TEST_CASE(what_a_waited_for_child_used_is_not_lost) {
  int up[2];
  int down[2];
  BOOST_REQUIRE(::pipe(up) == 0 && ::pipe(down) == 0);
  const pid_t root = ::fork();
  if (root == 0) {
    char c;
    if (::read(down[0], &c, 1) != 1) std::_Exit(1);
    const pid_t worker = ::fork();
    if (worker == 0) {
      const std::clock_t begin = std::clock();
      while (std::clock() - begin < CLOCKS_PER_SEC * 80 / 1000) {
      }
      std::_Exit(0);
    }
    ::waitpid(worker, nullptr, 0);
    [[maybe_unused]] const auto n = ::write(up[1], "x", 1);
    for (;;) ::pause();
  }
  auto s = Sampler::create({{"p", root}});
  BOOST_REQUIRE(s.has_value());
  s->begin();
  BOOST_REQUIRE(::write(down[1], "x", 1) == 1);
  char c;
  BOOST_REQUIRE(::read(up[0], &c, 1) == 1);
  s->end();
  BOOST_TEST(s->find("p")->cpu_ns >= 60'000'000u);  // ticks of 10 ms
  ::kill(root, SIGKILL);
  ::waitpid(root, nullptr, 0);
  for (const int fd : {up[0], up[1], down[0], down[1]}) ::close(fd);
}

BOOST_AUTO_TEST_CASE(a_process_that_is_not_there) {
  const pid_t gone = ::fork();
  if (gone == 0) std::_Exit(0);
  ::waitpid(gone, nullptr, 0);
  const auto s = Sampler::create({{"proxy", gone}});
  BOOST_REQUIRE(!s.has_value());
  BOOST_TEST(s.error().what.find("no such process") != std::string::npos);
  BOOST_TEST(own_cpu_ns() > 0u);
  BOOST_TEST(tree_usage(::getpid()).processes >= 1u);
}

/// 10 requests on 3 connections are 4, 3 and 3; a server that takes 3 lets 9 be in flight.
BOOST_AUTO_TEST_CASE(a_server_that_takes_fewer_streams_is_named_with_both_numbers) {
  Step s = sample_step();
  s.concurrency = 10;
  s.connections = 3;
  BOOST_TEST(limit_warning(s).empty());
  Counters other;
  other.note_allowed(5);
  other.note_allowed(0);
  s.counters.note_allowed(3);
  s.counters.merge(other);
  BOOST_TEST(s.counters.allowed_streams == 3u);
  BOOST_TEST(limit_warning(s) ==
             "warning: the server takes 3 requests at a time on a connection (SETTINGS_MAX_CONCURRENT_STREAMS) and 4 were to be: "
             "at most 9 of 10 were in flight (-m 3 opens enough connections)\n");
}

BOOST_AUTO_TEST_SUITE_END()
