#include "heddle/serve/bus.h"

#include <algorithm>

#include "heddle/base/spelling.h"
#include "lease_table.h"

namespace heddle {
namespace {

class InProcessBus final : public WorkerBus {
 public:
  explicit InProcessBus(const BusOptions& options) : options_(options), table_(options) {}

  Status announce(const std::string& key, const std::string& value) override {
    return table_.put(key, value);
  }
  Status withdraw(const std::string& key) override {
    table_.remove(key);
    return {};
  }
  double lease_s() const override { return options_.lease_s; }
  void watch(Watcher watcher) override { table_.watch(std::move(watcher)); }
  std::vector<BusEntry> entries() const override { return table_.entries(); }

 private:
  const BusOptions options_;
  LeaseTable table_;
};

}  // namespace

Status check_bus_key(const std::string& key) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  if (key.empty() || key.size() > 64 || !std::all_of(key.begin(), key.end(), allowed))
    return Error(Code::kInvalidInput,
                 "the name " + quote_text(key) + ": expected 1 to 64 letters, digits, '_' or '-'");
  return {};
}

Status check_bus_options(const BusOptions& options) {
  if (!(options.lease_s >= .1 && options.lease_s <= 3600))
    return Error(Code::kInvalidInput,
                 "a lease of " + std::to_string(options.lease_s) + " s: expected 0.1 to 3600");
  return {};
}

Result<std::unique_ptr<WorkerBus>> in_process_bus(const BusOptions& options) {
  HEDDLE_RETURN_IF_ERROR(check_bus_options(options));
  return std::unique_ptr<WorkerBus>(std::make_unique<InProcessBus>(options));
}

}  // namespace heddle
