#include "heddle/serve/grpc_server.h"

#include <grpcpp/resource_quota.h>

#include <chrono>
#include <iterator>

#include "grpc_ends.h"
#include "grpc_infer.h"
#include "grpc_message.h"
#include "heddle/base/version.h"
#include "heddle/serve/http_message.h"
#include "model_config.h"
#include "open_inference.grpc.pb.h"

namespace heddle {
namespace {

using grpc::CallbackServerContext;
using Reactor = grpc::ServerUnaryReactor;

void fill(const ServedModel& model, const std::vector<TensorInfo>& from,
          google::protobuf::RepeatedPtrField<inference::ModelMetadataResponse::TensorMetadata>& to) {
  for (const auto& t : from) {
    if (!t.listed()) continue;
    auto& tensor = *to.Add();
    tensor.set_name(t.name);
    tensor.set_datatype(protocol_name(t.dtype));
    if (model.batched) tensor.add_shape(-1);
    for (const auto d : t.shown()) tensor.add_shape(d);
  }
}

void fill(const ModelStatisticsRecord::Part& from, inference::StatisticDuration& to) {
  to.set_count(from.count);
  to.set_ns(from.ns);
}

void fill(const ServedModel& model, const ModelStatisticsRecord& from, inference::ModelStatistics& to) {
  to.set_name(model.name);
  to.set_version(model.version);
  to.set_last_inference(static_cast<uint64_t>(from.last_ms));
  to.set_inference_count(from.rows);
  uint64_t executions = 0;
  for (const auto& [size, part] : from.batches) {
    executions += part.count;
    auto& batch = *to.add_batch_stats();
    batch.set_batch_size(size);
    fill(part, *batch.mutable_compute_infer());
  }
  to.set_execution_count(executions);
  auto& stats = *to.mutable_inference_stats();
  fill(from.success, *stats.mutable_success());
  fill(from.fail, *stats.mutable_fail());
  fill(from.queue, *stats.mutable_queue());
  fill(from.compute, *stats.mutable_compute_infer());
}

using CallsBase = inference::GRPCInferenceService::WithRawCallbackMethod_ModelInfer<
    inference::GRPCInferenceService::CallbackService>;

class Calls final : public CallsBase {
 public:
  using CallsBase::ModelInfer;
  Calls(InferService& service, const GrpcServerOptions& options)
      : service_(service),
        wanted_(options.bearer_token.empty() ? "" : "Bearer " + options.bearer_token),
        rate_(options.rate),
        budget_(std::make_shared<MemoryBudget>(options.max_memory_bytes)) {}

  Reactor* ServerLive(CallbackServerContext* context, const inference::ServerLiveRequest*,
                      inference::ServerLiveResponse* response) override {
    response->set_live(service_.live());
    return grpc_finish(*context, grpc::Status::OK);
  }

  Reactor* ServerReady(CallbackServerContext* context, const inference::ServerReadyRequest*,
                       inference::ServerReadyResponse* response) override {
    response->set_ready(service_.ready());
    return grpc_finish(*context, grpc::Status::OK);
  }

  Reactor* ModelReady(CallbackServerContext* context, const inference::ModelReadyRequest* request,
                      inference::ModelReadyResponse* response) override {
    if (!permitted(*context)) return refuse(context);
    response->set_ready(service_.ready() && service_.model(request->name(), request->version()).ok());
    return grpc_finish(*context, grpc::Status::OK);
  }

  Reactor* ServerMetadata(CallbackServerContext* context, const inference::ServerMetadataRequest*,
                          inference::ServerMetadataResponse* response) override {
    if (!permitted(*context)) return refuse(context);
    response->set_name("heddle");
    response->set_version(kVersion);
    for (const char* extension :
         {"statistics", "model_repository", "schedule_policy", "sequence", "sequence(string_id)"})
      response->add_extensions(extension);
    return grpc_finish(*context, grpc::Status::OK);
  }

  Reactor* ModelMetadata(CallbackServerContext* context, const inference::ModelMetadataRequest* request,
                         inference::ModelMetadataResponse* response) override {
    if (!permitted(*context)) return refuse(context);
    const auto model = service_.model(request->name(), request->version());
    if (!model.ok()) return grpc_finish(*context, grpc_status(model.error()));
    const ServedModel& m = **model;
    response->set_name(m.name);
    response->add_versions(m.version);
    response->set_platform(m.platform);
    fill(m, m.inputs, *response->mutable_inputs());
    fill(m, m.outputs, *response->mutable_outputs());
    return grpc_finish(*context, grpc::Status::OK);
  }

  Reactor* ModelInfer(CallbackServerContext* context, const grpc::ByteBuffer* bytes,
                      grpc::ByteBuffer* response) override {
    if (!permitted(*context)) return refuse(context);
    if (rate_ && !rate_->take())
      return grpc_finish(*context, {grpc::StatusCode::RESOURCE_EXHAUSTED,
                                    "more than the permitted requests per second; try again later"});
    const auto trace = service_.tracer() != nullptr ? traced(*service_.tracer(), *context) : nullptr;
    // The call's own buffer: what is parsed need not be there twice.
    const auto read = read_infer_message(*const_cast<grpc::ByteBuffer*>(bytes), budget_);
    if (!read.message) {
      if (trace) trace->record.error = read.status.error_message();
      return grpc_finish(*context, read.status);
    }
    auto request = infer_request_of(read.message);
    if (!request.ok()) {
      if (trace) trace->record.error = request.error().to_string();
      return grpc_finish(*context, grpc_status(request.error()));
    }
    request->trace = trace;
    // A client's own deadline is one, too.
    const auto deadline = context->deadline();
    if (request->timeout_us == 0 && deadline != std::chrono::system_clock::time_point::max()) {
      const auto left =
          std::chrono::duration_cast<std::chrono::microseconds>(deadline - std::chrono::system_clock::now())
              .count();
      const auto model = service_.model(request->model, request->version);
      if (model.ok() && static_cast<double>(left) < (*model)->slo_us)
        request->timeout_us = std::max<int64_t>(1, left);
    }
    Reactor* const reactor = context->DefaultReactor();
    service_.infer(std::move(*request),
                   [reactor, response, budget = budget_](const Result<InferResponse>& result) {
                     reactor->Finish(result.ok() ? write_infer_answer(*result, budget, *response)
                                                 : grpc_status(result.error()));
                   });
    return reactor;
  }

  Reactor* ModelConfig(CallbackServerContext* context, const inference::ModelConfigRequest* request,
                       inference::ModelConfigResponse* response) override {
    if (!permitted(*context)) return refuse(context);
    const auto model = service_.model(request->name(), request->version());
    if (!model.ok()) return grpc_finish(*context, grpc_status(model.error()));
    *response->mutable_config() = triton_config(**model, service_.planned_rate(request->name()));
    return grpc_finish(*context, grpc::Status::OK);
  }

  Reactor* ModelStatistics(CallbackServerContext* context, const inference::ModelStatisticsRequest* request,
                           inference::ModelStatisticsResponse* response) override {
    if (!permitted(*context)) return refuse(context);
    if (request->name().empty()) {
      for (const auto& m : service_.models())
        fill(*m, service_.statistics(m->name), *response->add_model_stats());
      return grpc_finish(*context, grpc::Status::OK);
    }
    const auto model = service_.model(request->name(), request->version());
    if (!model.ok()) return grpc_finish(*context, grpc_status(model.error()));
    fill(**model, service_.statistics(request->name()), *response->add_model_stats());
    return grpc_finish(*context, grpc::Status::OK);
  }

  Reactor* RepositoryIndex(CallbackServerContext* context, const inference::RepositoryIndexRequest* request,
                           inference::RepositoryIndexResponse* response) override {
    if (!permitted(*context)) return refuse(context);
    for (const auto& e : service_.index()) {
      if (request->ready() && e.state != "READY") continue;
      auto& model = *response->add_models();
      model.set_name(e.name);
      model.set_version(e.version);
      model.set_state(e.state);
      model.set_reason(e.reason);
    }
    return grpc_finish(*context, grpc::Status::OK);
  }

  Reactor* RepositoryModelLoad(CallbackServerContext* context,
                               const inference::RepositoryModelLoadRequest* request,
                               inference::RepositoryModelLoadResponse*) override {
    return change(context, service_.repository().load, request->model_name());
  }

  Reactor* RepositoryModelUnload(CallbackServerContext* context,
                                 const inference::RepositoryModelUnloadRequest* request,
                                 inference::RepositoryModelUnloadResponse*) override {
    return change(context, service_.repository().unload, request->model_name());
  }

 private:
  bool permitted(const CallbackServerContext& context) const {
    if (wanted_.empty()) return true;
    const auto it = context.client_metadata().find("authorization");
    return it != context.client_metadata().end() &&
           same_secret({it->second.data(), it->second.size()}, wanted_);
  }
  static std::shared_ptr<RequestTrace> traced(Tracer& tracer, const CallbackServerContext& context) {
    // Of two parents none is right.
    const auto only = [&context](const char* name) -> std::string_view {
      const auto [first, last] = context.client_metadata().equal_range(name);
      if (first == last || std::next(first) != last) return {};
      return {first->second.data(), first->second.size()};
    };
    return tracer.begin("grpc", only("traceparent"), only("tracestate"));
  }
  static Reactor* refuse(CallbackServerContext* context) {
    return grpc_finish(*context, {grpc::StatusCode::UNAUTHENTICATED,
                                  "this server wants the metadata 'authorization: Bearer TOKEN'"});
  }

  Reactor* change(CallbackServerContext* context,
                  const std::function<void(const std::string&, InferService::Repository::OnDone)>& how,
                  const std::string& model) {
    if (!permitted(*context)) return refuse(context);
    if (!how)
      return grpc_finish(*context, {grpc::StatusCode::UNIMPLEMENTED,
                                    "the models of a fleet are loaded and unloaded by its plan"});
    Reactor* const reactor = context->DefaultReactor();
    how(model, [reactor](const Status& status) {
      reactor->Finish(status.ok() ? grpc::Status::OK : grpc_status(status.error()));
    });
    return reactor;
  }

  InferService& service_;
  const std::string wanted_;
  const std::shared_ptr<RateLimit> rate_;
  const std::shared_ptr<MemoryBudget>
      budget_;  // of ModelInfer's messages, which the quota does not count once parsed
};

class Server final : public GrpcServer {
 public:
  Server(const GrpcServerOptions& options, InferService& service) : calls_(service, options) {}
  ~Server() override { stop(0); }

  Status open(const GrpcServerOptions& options) {
    grpc::ResourceQuota quota("heddle");
    quota.Resize(options.max_memory_bytes);
    grpc::ServerBuilder builder;
    builder.SetResourceQuota(quota);
    ask_silent_callers(builder);
    builder.SetMaxReceiveMessageSize(
        static_cast<int>(std::min<size_t>(options.max_message_bytes, INT32_MAX)));
    builder.SetMaxSendMessageSize(-1);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                               static_cast<int>(std::min<size_t>(options.max_streams, INT32_MAX)));
    HEDDLE_ASSIGN_OR_RETURN(listener_,
                            grpc_listen(builder, options.host, options.port, options.tls, calls_, "gRPC"));
    return {};
  }

  int port() const override { return listener_.port; }

  void stop(double seconds) override {
    if (!listener_.server) return;
    listener_.server->Shutdown(std::chrono::system_clock::now() +
                               std::chrono::milliseconds(static_cast<int64_t>(seconds * 1e3)));
    listener_.server->Wait();
    listener_.server.reset();
  }

 private:
  Calls calls_;
  GrpcListener listener_;
};

}  // namespace

Result<std::unique_ptr<GrpcServer>> GrpcServer::start(const GrpcServerOptions& options,
                                                      InferService& service) {
  auto server = std::make_unique<Server>(options, service);
  HEDDLE_RETURN_IF_ERROR(server->open(options));
  return std::unique_ptr<GrpcServer>(std::move(server));
}

}  // namespace heddle
