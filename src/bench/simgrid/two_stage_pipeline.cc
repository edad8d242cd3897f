// heddle-simgrid: the two-stage pipeline of `heddle bench ppipe --only speed` in SimGrid (simgrid.org), to
// set its speed beside that of Heddle's simulator. It is built where SimGrid is installed.
//
//   heddle-simgrid REQUESTS HOSTS_A HOSTS_B RATE_PER_S RUN_A_US TRANSFER_US RUN_B_US
//
// Requests come at a Poisson process's times; each runs on a host A, is sent to a host B and runs there.
// Hosts are taken in turns and do one request at a time, each has a link of its own, and nothing is decided:
// what Heddle's scheduler does for each request has no counterpart here. The activities wait for one another
// by SimGrid's dependencies, started from the main program: no actor is switched to, which is faster than an
// actor for each host. Counted as events: a request's arrival, the ends of its two runs and of its transfer,
// as Heddle counts them; prints one line of JSON.

// clang-format off
#include <simgrid/s4u.hpp>
#include <simgrid/version.h>  // needs what s4u.hpp defines
// clang-format on

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

namespace sg = simgrid::s4u;

namespace {

constexpr double kSpeed = 1e9, kBandwidth = 1e9;  // so that work is nanoseconds and sizes are, too

struct Parameters {
  long requests = 0, hosts_a = 0, hosts_b = 0;
  double rate_per_s = 0, run_a_us = 0, transfer_us = 0, run_b_us = 0;
};

bool read_number(const char* text, double least, double most, double& out) {
  char* end = nullptr;
  out = std::strtod(text, &end);
  return end != text && *end == '\0' && out >= least && out <= most;
}

bool read(int argc, char** argv, Parameters& p) {
  double requests = 0, a = 0, b = 0;
  if (argc != 8 || !read_number(argv[1], 1, 1e8, requests) || !read_number(argv[2], 1, 1e5, a) ||
      !read_number(argv[3], 1, 1e5, b) || !read_number(argv[4], 1e-6, 1e9, p.rate_per_s) ||
      !read_number(argv[5], 1, 1e9, p.run_a_us) || !read_number(argv[6], 1, 1e9, p.transfer_us) ||
      !read_number(argv[7], 1, 1e9, p.run_b_us))
    return false;
  p.requests = std::lround(requests);
  p.hosts_a = std::lround(a);
  p.hosts_b = std::lround(b);
  return true;
}

// Starts when the host's work before it is done.
void queue_behind(sg::ExecPtr& last, const sg::ExecPtr& activity) {
  if (last && last->get_state() != sg::Activity::State::FINISHED) last->add_successor(activity);
  last = activity;
}

}  // namespace

int main(int argc, char** argv) {
  Parameters p;
  if (!read(argc, argv, p)) {
    std::fprintf(stderr,
                 "usage: heddle-simgrid REQUESTS HOSTS_A HOSTS_B RATE_PER_S RUN_A_US TRANSFER_US RUN_B_US\n");
    return 2;
  }
  std::string program = argv[0], quiet = "--log=xbt_cfg.thresh:warning";
  char* words[] = {program.data(), quiet.data(), nullptr};
  int count_of_words = 2;
  sg::Engine engine(&count_of_words, words);
  // A transfer takes its bytes over the bandwidth, without a model of TCP on top.
  sg::Engine::set_config("network/model:CM02");
  sg::Engine::set_config("network/TCP-gamma:0");
  sg::Engine::set_config("network/crosstraffic:0");
  auto* zone = sg::create_star_zone("zone");
  const auto make_hosts = [&](const char* prefix, long count) {
    std::vector<sg::Host*> hosts;
    for (long i = 0; i < count; ++i) {
      const std::string name = prefix + std::to_string(i);
      auto* host = zone->create_host(name, kSpeed);
      const auto* link = zone->create_split_duplex_link("link of " + name, kBandwidth)->set_latency(0);
      zone->add_route(host->get_netpoint(), nullptr, nullptr, nullptr,
                      {{link, sg::LinkInRoute::Direction::UP}}, true);
      hosts.push_back(host);
    }
    return hosts;
  };
  const auto a = make_hosts("a", p.hosts_a), b = make_hosts("b", p.hosts_b);
  zone->seal();

  uint64_t ends = 0;
  sg::Exec::on_completion_cb([&ends](const sg::Activity&) { ++ends; });
  std::vector<sg::ExecPtr> last_a(a.size()), last_b(b.size());
  std::vector<sg::ActivityPtr> all;  // SimGrid does not keep what nobody waits for
  all.reserve(3 * static_cast<size_t>(p.requests));
  uint64_t random = 88172645463325252ull;  // xorshift (Marsaglia, 2003)
  double at = 0;
  const std::clock_t began = std::clock();
  for (long r = 0; r < p.requests; ++r) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    at -= std::log1p(-static_cast<double>(random >> 11) * 0x1.0p-53) / p.rate_per_s;
    engine.run_until(at);
    auto *first = a[static_cast<size_t>(r) % a.size()], *second = b[static_cast<size_t>(r) % b.size()];
    const sg::ExecPtr run_a = sg::Exec::init()->set_flops_amount(p.run_a_us * 1e-6 * kSpeed)->set_host(first);
    const sg::CommPtr send = sg::Comm::sendto_init(first, second);
    send->set_payload_size(static_cast<uint64_t>(p.transfer_us * 1e-6 * kBandwidth));
    const sg::ExecPtr run_b =
        sg::Exec::init()->set_flops_amount(p.run_b_us * 1e-6 * kSpeed)->set_host(second);
    run_a->add_successor(send);
    send->add_successor(run_b);
    queue_behind(last_a[static_cast<size_t>(r) % a.size()], run_a);
    queue_behind(last_b[static_cast<size_t>(r) % b.size()], run_b);
    all.insert(all.end(), {run_a, send, run_b});
    run_a->vetoable_start();
    send->vetoable_start();
    run_b->vetoable_start();
  }
  engine.run();
  const double seconds = static_cast<double>(std::clock() - began) / static_cast<double>(CLOCKS_PER_SEC);
  if (ends != 3 * static_cast<uint64_t>(p.requests)) {
    std::fprintf(stderr, "heddle-simgrid: %llu of %llu activities ended\n",
                 static_cast<unsigned long long>(ends), 3 * static_cast<unsigned long long>(p.requests));
    return 1;
  }
  std::printf(
      "{\"version\":\"%d.%d\",\"requests\":%ld,\"events\":%llu,\"processor_s\":%.6f,\"end_s\":%.6f}\n",
      SIMGRID_VERSION_MAJOR, SIMGRID_VERSION_MINOR, p.requests,
      static_cast<unsigned long long>(ends + static_cast<uint64_t>(p.requests)), seconds,
      sg::Engine::get_clock());
  return 0;
}
