#include "simulated_store.h"

#include <algorithm>
#include <functional>

namespace heddle {
namespace {

constexpr int64_t kPatience_ns = 300'000'000;

class Store final : public SharedStore {
 public:
  Store(std::shared_ptr<SimulatedDisk> disk, SimulatedNetwork& network)
      : disk_(std::move(disk)), network_(network) {}

  Result<Entry> get(const std::string& key) override {
    return call<Entry>([disk = disk_, key]() -> Result<Entry> {
      const auto it = disk->entries.find(key);
      return it == disk->entries.end() ? Entry{} : it->second;
    });
  }
  Result<std::optional<uint64_t>> set(const std::string& key, const std::string& value,
                                      uint64_t revision) override {
    using Set = std::optional<uint64_t>;
    return call<Set>([disk = disk_, key, value, revision]() -> Result<Set> {
      if (disk->full) return io_error("no space is left on the store's disk");
      Entry& entry = disk->entries[key];
      if (entry.revision != revision) return Set();
      entry = {value, ++disk->revisions};
      return Set(entry.revision);
    });
  }

 private:
  // Carried out in the disk's process.
  template <class T>
  Result<T> call(std::function<Result<T>()> what) {
    auto& simulation = Simulation::current();
    const auto answer = std::make_shared<std::optional<Result<T>>>();
    const auto me = simulation.process(), there = disk_->process;
    const int64_t until = simulation.now() + kPatience_ns;
    const int64_t arrives = simulation.now() + network_.delay();
    simulation.start(there,
                     [&simulation, &network = network_, answer, what = std::move(what), arrives, there, me] {
                       travel(simulation, network, me, there, arrives);
                       auto result = what();
                       travel(simulation, network, there, me, simulation.now() + network.delay());
                       *answer = std::move(result);
                       simulation.wake(answer.get());
                     });
    while (!*answer && simulation.now() < until) simulation.wait(answer.get(), until);
    return *answer ? **answer : Result<T>(io_error("the store does not answer"));
  }

  static void travel(Simulation& simulation, const SimulatedNetwork& network, Simulation::Process from,
                     Simulation::Process to, int64_t at) {
    while (std::max(at, network.cut_until(from, to)) > simulation.now())
      simulation.wait(&at, std::max(at, network.cut_until(from, to)));
  }

  const std::shared_ptr<SimulatedDisk> disk_;
  SimulatedNetwork& network_;
};

}  // namespace

std::shared_ptr<SharedStore> simulated_store(std::shared_ptr<SimulatedDisk> disk, SimulatedNetwork& network) {
  return std::make_shared<Store>(std::move(disk), network);
}

}  // namespace heddle
