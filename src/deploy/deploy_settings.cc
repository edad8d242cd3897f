#include "heddle/deploy/deploy_settings.h"

#include <algorithm>
#include <cctype>

#include "heddle/base/fields.h"
#include "heddle/base/file.h"
#include "heddle/base/spelling.h"
#include "heddle/cluster/yaml_json.h"
#include "heddle/fleet/fleet.h"

namespace heddle {
namespace {

// Texts end up in manifests, scripts and unit files, in which a line break or quote would begin another directive.
Status plain_text(const JsonCursor& at, std::string& out) {
  HEDDLE_ASSIGN_OR_RETURN(out, at.as_string());
  const auto is_bad = [](char c) {
    return std::iscntrl(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("'\"\\`$%").find(c) != std::string_view::npos;
  };
  if (std::any_of(out.begin(), out.end(), is_bad))
    return at.error("is " + at.describe() +
                    ", expected text without quotes, $, %, \\ and control characters");
  return {};
}

// A size or time goes into unit files and scripts without quotes, so it has no blank either.
Status one_word(const JsonCursor& at, std::string& out) {
  HEDDLE_RETURN_IF_ERROR(plain_text(at, out));
  if (out.empty() || out.find_first_of(" ;&|<>()#") != std::string::npos)
    return at.error("is " + at.describe() + ", expected one word");
  return {};
}

auto word_into(std::string& out) {
  return [&out](const JsonCursor& at) { return one_word(at, out); };
}

auto words_into(std::vector<std::string>& out) {
  return each([&out](const JsonCursor& at) { return one_word(at, out.emplace_back()); }, kMaxFleetDevices);
}

Status take_labels(const JsonCursor& at, std::map<std::string, std::string>& out) {
  return each_member("an object of labels", [&out](const std::string& name, const JsonCursor& value) {
    return plain_text(value, out[name]);
  })(at);
}

Result<ClassSettings> class_settings(const JsonCursor& at) {
  ClassSettings c;
  Fields f(at);
  f.optional("per_worker", c.per_worker, 1, 1024)
      .optional("spare", c.spare, 0, kMaxFleetDevices)
      .optional("names", words_into(c.names))
      .optional("hosts", words_into(c.hosts))
      .optional("cpus", c.cpus, 1, 4096)
      .optional("memory", word_into(c.memory))
      .optional("resource", word_into(c.resource))
      .optional("select", [&c](const JsonCursor& labels) { return take_labels(labels, c.select); })
      .optional("partition", word_into(c.partition))
      .optional("gres", word_into(c.gres))
      .optional("constraint", word_into(c.constraint));
  HEDDLE_RETURN_IF_ERROR(f.finish());
  if (!c.names.empty() && static_cast<int64_t>(c.names.size()) != c.per_worker)
    return at.error("names " + counted(c.names.size(), "device") + ", but a worker has " +
                    std::to_string(c.per_worker) + "; make per_worker and names agree");
  return c;
}

Result<DeploySettings> settings_from(const JsonCursor& at) {
  DeploySettings s;
  bool tls = true;
  Fields f(at, "heddle-deploy", 1);
  f.optional("name", word_into(s.name))
      .optional("program", word_into(s.program))
      .optional("image", word_into(s.image))
      .optional("models", word_into(s.models))
      .optional("host", word_into(s.host))
      .optional("port", s.port, 1, 65535)
      .optional("grpc_port", s.grpc_port, 1, 65535)
      .optional("worker_port", s.worker_port, 1, 65535)
      .optional("worker_listen_port", s.worker_listen_port, 1, 65535)
      .optional("drain_s", s.drain_s, 1., 3600.)
      .optional("wait_s", s.wait_s, 1., 86400.)
      .optional("tls", tls)
      .optional("tokens", s.tokens)
      .optional("standbys", s.standbys, 0, 8)
      .optional("server_cpus", s.server_cpus, 1, 4096)
      .optional("server_memory", word_into(s.server_memory))
      .optional("bus", word_into(s.bus))
      .optional("namespace", word_into(s.namespace_name))
      .optional("models_claim", word_into(s.models_claim))
      .optional("nats_image", word_into(s.nats_image))
      .optional("priority_class", word_into(s.priority_class))
      .optional("partition", word_into(s.partition))
      .optional("account", word_into(s.account))
      .optional("time", word_into(s.time))
      .optional("server_constraint", word_into(s.server_constraint))
      .optional("classes", each_member("an object of device classes",
                                       [&s](const std::string& name, const JsonCursor& c) -> Status {
                                         HEDDLE_ASSIGN_OR_RETURN(s.classes[name], class_settings(c));
                                         return {};
                                       }));
  HEDDLE_RETURN_IF_ERROR(f.finish());
  if (at.has("tls")) s.tls = tls;
  if (!s.models_claim.empty() && s.models.empty()) s.models = "/models";
  if (!s.bus.empty() && s.bus != "nats" && !s.bus.starts_with("nats://"))
    return invalid_input("bus " + quote_text(s.bus) + ": expected nats or nats://HOST:PORT")
        .with_context("$.bus");
  if (s.standbys > 0 && s.bus.empty())
    return invalid_input("servers that stand by share their state on a bus; add bus: nats://HOST:PORT")
        .with_context("$.standbys");
  return s;
}

}  // namespace

Result<DeploySettings> read_deploy_settings(const std::string& path) {
  HEDDLE_ASSIGN_OR_RETURN(const auto text, read_file(path, int64_t{1} << 24));
  HEDDLE_ASSIGN_OR_RETURN(const auto document, parse_yaml_as_json(text, path, "deployment settings file"));
  auto settings = settings_from(JsonCursor(document.json));
  if (!settings.ok()) return with_yaml_place(std::move(settings).error(), document, path);
  return settings;
}

}  // namespace heddle
