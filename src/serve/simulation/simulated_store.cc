#include "simulated_store.h"

#include <algorithm>
#include <cstdlib>
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

class CheckedStore final : public SharedStore {
 public:
  CheckedStore(std::shared_ptr<SharedStore> store, std::shared_ptr<StoreLedger> ledger)
      : store_(std::move(store)), ledger_(std::move(ledger)) {}

  Result<Entry> get(const std::string& key) override {
    const auto& known = ledger_->entries[key];
    const uint64_t confirmed = known.revision;
    auto entry = store_->get(key);
    if (!entry.ok() && entry.error().code() != Code::kIo)
      fail(key, "cannot be read: " + entry.error().to_string());
    if (!entry.ok()) return entry;
    if (entry->revision < confirmed)
      fail(key, "has revision " + std::to_string(entry->revision) + ", and " + std::to_string(confirmed) +
                    " was confirmed");
    if (entry->revision > 0 && !known.tried.contains(entry->value))
      fail(key, "is torn: it has " + std::to_string(entry->value.size()) + " bytes that nobody has set");
    if (entry->revision > 0 && entry->revision == known.revision && entry->value != known.value)
      fail(key, "has another value than was confirmed");
    return entry;
  }
  Result<std::optional<uint64_t>> set(const std::string& key, const std::string& value,
                                      uint64_t revision) override {
    auto& known = ledger_->entries[key];
    known.tried.insert(value);
    auto done = store_->set(key, value, revision);
    if (!done.ok() || !*done) return done;
    // Also to one that is not the newest any more, by a server that stood still meanwhile.
    if (!known.set.insert(**done).second) fail(key, "is set twice to revision " + std::to_string(**done));
    if (**done < known.revision) return done;
    known.revision = **done;
    known.value = value;
    if (key != "state") return done;
    const uint64_t term = term_of_state(value);
    if (term < known.term)
      fail(key, "is set by a server of term " + std::to_string(term) + " after one of term " +
                    std::to_string(known.term));
    known.term = term;
    return done;
  }

 private:
  // Its first line has the fleet file's hash and the term.
  static uint64_t term_of_state(const std::string& value) {
    return std::strtoull(value.c_str() + value.find(' ') + 1, nullptr, 10);
  }
  [[noreturn]] static void fail(const std::string& key, const std::string& why) {
    Simulation::current().fail("the stored entry '" + key + "' " + why);
  }
  const std::shared_ptr<SharedStore> store_;
  const std::shared_ptr<StoreLedger> ledger_;
};

}  // namespace

std::shared_ptr<SharedStore> checked_store(std::shared_ptr<SharedStore> store,
                                           std::shared_ptr<StoreLedger> ledger) {
  return std::make_shared<CheckedStore>(std::move(store), std::move(ledger));
}

std::shared_ptr<SharedStore> simulated_store(std::shared_ptr<SimulatedDisk> disk, SimulatedNetwork& network) {
  return std::make_shared<Store>(std::move(disk), network);
}

}  // namespace heddle
