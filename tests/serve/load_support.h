// What the load generator's tests share, whichever way their requests go.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "heddle/base/json.h"
#include "heddle/serve/http_server.h"
#include "heddle/serve/infer_service.h"
#include "heddle/serve/load.h"

namespace heddle {

inline std::vector<Arrival> steady(int count, TimeNs gap) {
  std::vector<Arrival> arrivals;
  for (int i = 0; i < count; ++i) arrivals.push_back({i * gap, 0});
  return arrivals;
}

// The deployment's one model, "m", on timed devices, which take payloads of any size within 500 ms. Null,
// with a failure of the test: there is no plane for it.
// `runners` run in place of the first devices.
inline std::unique_ptr<Generation> payload_generation(const Deployment& d,
                                                      std::vector<std::shared_ptr<DeviceRunner>> runners = {},
                                                      double slo_us = 500e3) {
  LivePlaneOptions plane;
  plane.scheduler = SchedulerKind::kReactive;
  runners.resize(d.devices.size());
  auto live = LivePlane::create(d, plane, std::move(runners));
  EXPECT_TRUE(live.ok());
  if (!live.ok()) return nullptr;
  auto generation = std::make_unique<Generation>();
  generation->plane = std::move(*live);
  auto model = std::make_shared<ServedModel>();
  model->name = "m";
  model->version = "1";
  model->inputs = {{"payload", DType::kU8, {-1}, 0}};
  model->outputs = {{"batch_size", DType::kI64, {1}, 8}};
  model->any_payload = true;
  model->slo_us = slo_us;
  generation->models.push_back(model);
  return generation;
}

inline const std::vector<ModelUnderLoad> kModels = {
    {.name = "m",
     .slo_us = 20e6,
     .planned_rate_per_s = 100,
     .bodies = {{.inputs_json = "\"inputs\":[]}", .tensors = "", .grpc_message = ""}},
     .turns = {}}};

// A server whose answers the test chooses.
class Stub {
 public:
  explicit Stub(HttpServer::Handler handler) {
    auto server = HttpServer::start({}, std::move(handler));
    EXPECT_TRUE(server.ok());
    server_ = std::move(*server);
    target.port = server_->port();
  }
  LoadTarget target;

 private:
  std::unique_ptr<HttpServer> server_;
};

inline HttpResponse answer_to(const HttpBody& body, bool wrong_id = false) {
  const auto request = parse_json(body.text());
  EXPECT_TRUE(request.ok());
  HttpResponse response;
  response.body = Json{{"id", wrong_id ? Json("none") : (*request)["id"]}, {"outputs", Json::array()}}.dump();
  return response;
}

}  // namespace heddle
