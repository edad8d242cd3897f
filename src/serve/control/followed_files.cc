#include "heddle/serve/followed_files.h"

#include "heddle/base/log.h"

namespace heddle {

void follow_plan(const std::string& path, const InferService& service, const std::string& model) {
  service.repository().load(model, [path](const Status& status) {
    if (status.ok())
      log_line(LogLevel::kInfo, path + ": the new plan is in use");
    else
      log_line(LogLevel::kWarning, status.error().to_string() + "; the old plan stays in use");
  });
}

void follow_fleet(const std::string& path, FleetControl& control) {
  const auto refused = [](const Error& error) {
    log_line(LogLevel::kWarning, error.to_string() + "; the old plan stays in use");
  };
  auto fleet = read_fleet(path);
  if (!fleet.ok()) return refused(fleet.error());
  control.replace(std::move(*fleet), [path, refused](const Status& status) {
    if (!status.ok()) return refused(Error(status.error()).with_context(path));
    log_line(LogLevel::kInfo, path + ": the fleet has changed, its new plan is in use");
  });
}

}  // namespace heddle
