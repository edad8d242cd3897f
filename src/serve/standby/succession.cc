#include "heddle/serve/succession.h"

#include "heddle/base/log.h"
#include "leadership.h"
#include "server_state.h"
#include "stored_succession.h"

namespace heddle {
namespace {

class StoredSuccession final : public Succession {
 public:
  StoredSuccession(const std::shared_ptr<SharedStore>& store, const SuccessionOptions& options)
      : where_(options.where),
        lost_(options.lost),
        state_(store),
        leadership_(store, options.name, options.lease_s) {}

  Status wait_to_lead(const CancelToken& cancel,
                      const std::function<void(const std::string&)>& waits) override {
    HEDDLE_RETURN_IF_ERROR(leadership_.wait(cancel, waits));
    leadership_.keep(
        [this](const std::string& leader) {
          log_line(LogLevel::kError, "the server " + leader + " has taken over; this one stops serving");
          lost_.cancel();
        },
        [this](const std::string& error) {
          if (error.empty()) return log_line(LogLevel::kInfo, where_ + ": the lease is renewed again");
          log_line(LogLevel::kWarning,
                   where_ + ": the lease cannot be renewed, so a standby may take over: " + error);
        });
    return {};
  }
  bool lost() const override { return leadership_.lost(); }
  std::string leader() const override { return leadership_.leader(); }
  uint64_t term() const override { return leadership_.term(); }
  Result<std::string> saved_state(uint64_t hash) override { return state_.load(hash, term()); }
  Status save(uint64_t hash, const std::string& state) override { return state_.save(hash, state, term()); }

 private:
  const std::string where_;
  const CancelToken lost_;
  ServerState state_;
  Leadership leadership_;
};

}  // namespace

std::unique_ptr<Succession> stored_succession(const std::shared_ptr<SharedStore>& store,
                                              const SuccessionOptions& options) {
  return std::make_unique<StoredSuccession>(store, options);
}

Result<std::unique_ptr<Succession>> Succession::open(const SuccessionOptions& options) {
  if (!(options.lease_s >= .1 && options.lease_s <= 3600))
    return invalid_input("a lease takes 0.1 to 3600 s");
  HEDDLE_ASSIGN_OR_RETURN(const auto store, open_shared_store(options.where, options.bucket));
  return stored_succession(store, options);
}

}  // namespace heddle
