// Kubernetes: a Deployment for the server, a StatefulSet for each class of devices, and what they need around them.
// kustomize (`kubectl apply -k`) makes the ConfigMap and the Secret, whose names change with their content, so that a
// changed plan restarts the server.
#include <cctype>
#include <cmath>

#include "commands.h"
#include "heddle/base/json.h"
#include "heddle/base/units.h"
#include "heddle/cluster/yaml_json.h"
#include "renderers.h"

namespace heddle {
namespace {

// Between the SIGTERM's cause and it, while endpoints and load balancers still send requests here.
constexpr int kEndpointDelay_s = 5;
constexpr int64_t kMostConfigBytes = 1'000'000;  // a ConfigMap holds 1 MiB
constexpr int kUser = 65532;                     // any user but root
constexpr const char* kFilesFolder = "/etc/heddle/files";
constexpr const char* kSecretsFolder = "/etc/heddle/secrets";

std::string label_value(const std::string& text) {
  std::string out;
  for (const char c : text)
    out += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' ? c : '-';
  while (!out.empty() && std::isalnum(static_cast<unsigned char>(out.back())) == 0) out.pop_back();
  while (!out.empty() && std::isalnum(static_cast<unsigned char>(out.front())) == 0) out.erase(0, 1);
  return out.substr(0, 63);
}

// In arguments Kubernetes expands $(NAME); $$ stands for a dollar sign.
Json arguments(const std::vector<std::string>& words) {
  Json out = Json::array();
  for (const auto& w : words)
    out.push_back(expanded_word(
        w, [](const std::string& text) { return replaced_all(text, "$", "$$"); },
        [](const std::string& text) { return "$(" + text + ")"; }));
  return out;
}

class Kubernetes {
 public:
  explicit Kubernetes(const Workloads& w) : w_(w), s_(w.settings) {}

  DeployFiles files() {
    DeployFiles out = w_.files;
    out["server.yaml"] = server_documents();
    for (const auto& g : w_.groups) out["workers-" + suffix(g) + ".yaml"] = worker_documents(g);
    if (s_.bus == "nats" && w_.is_fleet) out["bus.yaml"] = bus_documents();
    if (s_.priority_class.empty()) out["priority.yaml"] = priority_documents();
    Json resources = Json::array();
    for (const auto& [path, text] : out)
      if (!w_.files.contains(path)) resources.push_back(path);
    out["kustomization.yaml"] = json_to_yaml(kustomization(resources));
    if (!secret_files(w_).empty()) out["make-secrets.sh"] = secrets_script(w_, certificate_names());
    return out;
  }

 private:
  std::string suffix(const WorkerGroup& g) const { return g.name.substr(w_.name.size() + 1); }
  std::string domain() const { return s_.namespace_name + ".svc"; }
  std::string registry() const { return w_.name + "-registry"; }
  std::string bus_name() const { return w_.name + "-bus"; }

  std::vector<std::string> certificate_names() const {
    std::vector<std::string> names = {w_.name, w_.name + "." + domain()};
    if (w_.is_fleet) names.push_back(registry() + "." + domain());
    for (const auto& g : w_.groups) names.push_back("*." + g.name + "." + domain());
    return names;
  }

  Places places() const {
    Places p;
    p.program = s_.program.empty() ? "heddle" : s_.program;
    p.files = kFilesFolder;
    p.secrets = kSecretsFolder;
    p.bind = "0.0.0.0";
    p.server = registry() + "." + domain();
    p.bus = s_.bus == "nats" ? "nats://" + bus_name() + "." + domain() + ":4222" : s_.bus;
    p.worker_name = variable("POD_NAME");
    p.worker_port = std::to_string(s_.worker_listen_port);
    return p;
  }

  Json labels(const std::string& component) const {
    return {{"app.kubernetes.io/name", "heddle"},
            {"app.kubernetes.io/instance", w_.name},
            {"app.kubernetes.io/component", component}};
  }
  Json metadata(const std::string& name, const std::string& component) const {
    return {{"name", name}, {"labels", labels(component)}};
  }
  static Json document(const char* version, const char* kind, Json metadata, Json spec) {
    return {{"apiVersion", version},
            {"kind", kind},
            {"metadata", std::move(metadata)},
            {"spec", std::move(spec)}};
  }
  static Json port(const char* name, int64_t number) {
    return {{"name", name}, {"port", number}, {"targetPort", name}};
  }
  Json service(const std::string& name, const std::string& component, Json ports) const {
    Json spec = {{"selector", labels(component)}, {"ports", std::move(ports)}};
    return document("v1", "Service", metadata(name, component), std::move(spec));
  }
  // Names each pod, also those that are not ready yet.
  Json headless_service(const std::string& name, const std::string& component, Json port) const {
    Json spec = {{"clusterIP", "None"},
                 {"publishNotReadyAddresses", true},
                 {"selector", labels(component)},
                 {"ports", Json::array({std::move(port)})}};
    return document("v1", "Service", metadata(name, component), std::move(spec));
  }
  Json priority(const char* role) const {
    return s_.priority_class.empty() ? w_.name + "-" + role : s_.priority_class;
  }
  int64_t termination_s() const { return static_cast<int64_t>(std::ceil(w_.drain_s)) + 5; }

  // Guaranteed quality of service, so that a kubelet with static CPU management gives whole cores.
  static Json resources(int64_t cpus, const std::string& memory, const std::string& extended, int64_t count) {
    Json limits = {{"cpu", cpus}, {"memory", memory}};
    if (!extended.empty() && count > 0) limits[extended] = count;
    return {{"requests", limits}, {"limits", limits}};
  }

  Json container(const char* name, const std::vector<std::string>& command, Json resources) const {
    Json mounts = {{{"name", "tmp"}, {"mountPath", "/tmp"}}};
    if (name == std::string("server"))
      mounts.push_back({{"name", "files"}, {"mountPath", kFilesFolder}, {"readOnly", true}});
    if (!secret_files(w_).empty())
      mounts.push_back({{"name", "secrets"}, {"mountPath", kSecretsFolder}, {"readOnly", true}});
    if (!s_.models_claim.empty())
      mounts.push_back({{"name", "models"}, {"mountPath", s_.models}, {"readOnly", true}});
    return {{"name", name},
            {"image", s_.image},
            {"command", arguments(command)},
            {"env", {{{"name", "HOME"}, {"value", "/tmp"}}}},
            {"resources", std::move(resources)},
            {"securityContext",
             {{"allowPrivilegeEscalation", false},
              {"readOnlyRootFilesystem", true},
              {"capabilities", {{"drop", {"ALL"}}}}}},
            {"volumeMounts", std::move(mounts)}};
  }

  Json pod(const std::string& component, Json container, const char* role, const Json& select) const {
    Json volumes = {{{"name", "tmp"}, {"emptyDir", Json::object()}}};
    if (role == std::string("server"))
      volumes.push_back({{"name", "files"}, {"configMap", {{"name", w_.name + "-files"}}}});
    if (!secret_files(w_).empty())
      volumes.push_back(
          {{"name", "secrets"}, {"secret", {{"secretName", w_.name + "-secrets"}, {"defaultMode", 0440}}}});
    if (!s_.models_claim.empty())
      volumes.push_back({{"name", "models"},
                         {"persistentVolumeClaim", {{"claimName", s_.models_claim}, {"readOnly", true}}}});
    Json spec = {{"priorityClassName", priority(role)},
                 {"automountServiceAccountToken", false},
                 {"securityContext",
                  {{"runAsNonRoot", true},
                   {"runAsUser", kUser},
                   {"fsGroup", kUser},
                   {"seccompProfile", {{"type", "RuntimeDefault"}}}}}};
    if (!select.empty()) spec["nodeSelector"] = select;
    spec["containers"] = Json::array({std::move(container)});
    spec["volumes"] = std::move(volumes);
    return {{"metadata", {{"labels", labels(component)}}}, {"spec", std::move(spec)}};
  }

  Json health(const char* path, int period_s, int64_t failures) const {
    return {{"httpGet", {{"path", path}, {"port", "http"}, {"scheme", has_tls(w_) ? "HTTPS" : "HTTP"}}},
            {"periodSeconds", period_s},
            {"timeoutSeconds", 2},
            {"failureThreshold", failures}};
  }

  // The devices of a plan of one model are those of the server's own container.
  Json server_resources() const {
    const int64_t gpus = w_.hosts.empty() ? 0 : w_.hosts.front().gpus;
    return resources(s_.server_cpus, s_.server_memory, "nvidia.com/gpu", gpus);
  }

  std::string server_documents() const {
    Json c = container("server", server_command(w_, places()), server_resources());
    c["ports"] = {{{"name", "http"}, {"containerPort", s_.port}},
                  {{"name", "grpc"}, {"containerPort", s_.grpc_port}}};
    if (w_.is_fleet) c["ports"].push_back({{"name", "registry"}, {"containerPort", s_.worker_port}});
    // The server listens once it has its workers and has tried the plan on them.
    constexpr int kStartPeriod_s = 5;
    constexpr double kLoading_s = 300;
    // One of several servers is ready, the others are alive.
    c["startupProbe"] = health(s_.standbys > 0 ? "/v2/health/live" : "/v2/health/ready", kStartPeriod_s,
                               static_cast<int64_t>(std::ceil((s_.wait_s + kLoading_s) / kStartPeriod_s)));
    c["livenessProbe"] = health("/v2/health/live", 10, 3);
    c["readinessProbe"] = health("/v2/health/ready", 2, 1);
    c["lifecycle"] = {{"preStop", {{"exec", {{"command", {"sleep", std::to_string(kEndpointDelay_s)}}}}}}};
    Json select = Json::object();
    if (!w_.hosts.empty()) select["heddle/class"] = label_value(w_.hosts.front().host_class);
    Json template_ = pod("server", std::move(c), "server", select);
    template_["spec"]["terminationGracePeriodSeconds"] = kEndpointDelay_s + termination_s();
    // A second server would take the workers from the first, so an update ends the old one before.
    Json spec = {{"replicas", 1 + (w_.is_fleet ? s_.standbys : 0)},
                 {"progressDeadlineSeconds", static_cast<int64_t>(s_.wait_s + 2 * kLoading_s)},
                 {"strategy", {{"type", "Recreate"}}},
                 {"selector", {{"matchLabels", labels("server")}}},
                 {"template", std::move(template_)}};
    std::string out =
        json_to_yaml(document("apps/v1", "Deployment", metadata(w_.name, "server"), std::move(spec))) +
        "---\n" +
        json_to_yaml(
            service(w_.name, "server", Json::array({port("http", s_.port), port("grpc", s_.grpc_port)})));
    if (!w_.is_fleet) return out;
    // Workers announce themselves before the server is ready: it waits for them.
    return out + "---\n" +
           json_to_yaml(headless_service(registry(), "server", port("registry", s_.worker_port)));
  }

  std::string worker_documents(const WorkerGroup& g) const {
    const auto component = "workers-" + suffix(g);
    Places p = places();
    p.advertise = variable("POD_NAME") + "." + g.name + "." + domain();
    const auto& settings = g.settings;
    const std::string extended = settings.resource == "none"  ? ""
                                 : !settings.resource.empty() ? settings.resource
                                 : g.is_gpu                   ? "nvidia.com/gpu"
                                                              : "";
    const int64_t cpus = settings.cpus > 0 ? settings.cpus : g.is_gpu ? 2 : settings.per_worker;
    Json c = container(
        "worker", worker_command(w_, g, p),
        resources(cpus, settings.memory.empty() ? "4Gi" : settings.memory, extended, settings.per_worker));
    c["env"].push_back(
        {{"name", "POD_NAME"}, {"valueFrom", {{"fieldRef", {{"fieldPath", "metadata.name"}}}}}});
    c["ports"] = Json::array({{{"name", "worker"}, {"containerPort", s_.worker_listen_port}}});
    // Only its port: a worker that has lost its server works on, and the server knows lost workers itself.
    for (const char* probe : {"readinessProbe", "livenessProbe"})
      c[probe] = {{"tcpSocket", {{"port", "worker"}}}, {"periodSeconds", 10}};
    Json select = Json::object();
    for (const auto& [key, value] : settings.select) select[key] = value;
    if (select.empty()) select["heddle/class"] = label_value(g.device_class);
    Json template_ = pod(component, std::move(c), "workers", select);
    template_["spec"]["terminationGracePeriodSeconds"] = termination_s();
    const Json own = metadata(g.name, component), selector = {{"matchLabels", labels(component)}};
    Json spec = {{"replicas", g.workers},
                 {"serviceName", g.name},
                 {"podManagementPolicy", "Parallel"},
                 {"selector", selector},
                 {"template", std::move(template_)}};
    Json budget = {{"maxUnavailable", 1}, {"selector", selector}};
    return json_to_yaml(document("apps/v1", "StatefulSet", own, std::move(spec))) + "---\n" +
           json_to_yaml(headless_service(g.name, component, port("worker", s_.worker_listen_port))) +
           "---\n" + json_to_yaml(document("policy/v1", "PodDisruptionBudget", own, std::move(budget)));
  }

  std::string bus_documents() const {
    Json c = {{"name", "nats"},
              {"image", s_.nats_image},
              {"args", {"-js", "-sd", "/data"}},
              {"ports", Json::array({{{"name", "nats"}, {"containerPort", 4222}}})},
              {"readinessProbe", {{"tcpSocket", {{"port", "nats"}}}, {"periodSeconds", 5}}},
              {"resources", resources(1, "256Mi", "", 0)},
              {"volumeMounts", Json::array({{{"name", "data"}, {"mountPath", "/data"}}})}};
    // Workers renew their entries within a lease: nothing is lost with the bus's memory.
    Json pod = {{"priorityClassName", priority("server")},
                {"automountServiceAccountToken", false},
                {"containers", Json::array({std::move(c)})},
                {"volumes", Json::array({{{"name", "data"}, {"emptyDir", Json::object()}}})}};
    Json spec = {{"replicas", 1},
                 {"selector", {{"matchLabels", labels("bus")}}},
                 {"template", {{"metadata", {{"labels", labels("bus")}}}, {"spec", std::move(pod)}}}};
    return json_to_yaml(document("apps/v1", "Deployment", metadata(bus_name(), "bus"), std::move(spec))) +
           "---\n" + json_to_yaml(service(bus_name(), "bus", Json::array({port("nats", 4222)})));
  }

  // The server before its workers: without it no worker is of use.
  std::string priority_documents() const {
    const auto document = [this](const char* role, int value) {
      return json_to_yaml({{"apiVersion", "scheduling.k8s.io/v1"},
                           {"kind", "PriorityClass"},
                           {"metadata", {{"name", w_.name + "-" + role}}},
                           {"value", value},
                           {"description", "Heddle's " + std::string(role) + " of " + w_.name}});
    };
    if (!w_.is_fleet) return document("server", 100000);
    return document("server", 100000) + "---\n" + document("workers", 90000);
  }

  Json kustomization(const Json& resources) const {
    Json config_files = Json::array(), secrets = Json::array();
    for (const auto& [path, text] : w_.files) config_files.push_back(path);
    for (const auto& name : secret_files(w_)) secrets.push_back("secrets/" + name);
    Json out = {
        {"apiVersion", "kustomize.config.k8s.io/v1beta1"},
        {"kind", "Kustomization"},
        {"namespace", s_.namespace_name},
        {"resources", resources},
        {"configMapGenerator", Json::array({{{"name", w_.name + "-files"}, {"files", config_files}}})}};
    if (!secrets.empty())
      out["secretGenerator"] = Json::array({{{"name", w_.name + "-secrets"}, {"files", secrets}}});
    return out;
  }

  const Workloads& w_;
  const DeploySettings& s_;
};

}  // namespace

Result<DeployFiles> kubernetes_files(const Workloads& workloads) {
  if (workloads.hosts.size() > 1) return unsupported(over_hosts(workloads, "Kubernetes"));
  int64_t bytes = 0;
  for (const auto& [path, text] : workloads.files) bytes += static_cast<int64_t>(text.size());
  if (bytes > kMostConfigBytes)
    return unsupported("fleet and plan have " + format_bytes(bytes) +
                       ", and a ConfigMap holds 1 MiB; serve fewer models or batch sizes");
  return Kubernetes(workloads).files();
}

}  // namespace heddle
