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

using grpc::ByteBuffer;
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

using Protocol = inference::GRPCInferenceService;
// Every method takes its message as bytes, so that none is parsed before its call is permitted.
using LiveCalls = Protocol::WithRawCallbackMethod_ServerLive<
    Protocol::WithRawCallbackMethod_ServerReady<Protocol::Service>>;
using ModelCalls = Protocol::WithRawCallbackMethod_ModelReady<Protocol::WithRawCallbackMethod_ModelMetadata<
    Protocol::WithRawCallbackMethod_ModelInfer<Protocol::WithRawCallbackMethod_ModelConfig<
        Protocol::WithRawCallbackMethod_ModelStatistics<LiveCalls>>>>>;
using CallsBase = Protocol::WithRawCallbackMethod_ServerMetadata<
    Protocol::WithRawCallbackMethod_RepositoryIndex<Protocol::WithRawCallbackMethod_RepositoryModelLoad<
        Protocol::WithRawCallbackMethod_RepositoryModelUnload<ModelCalls>>>>;

// Of a message that names a model. Parsed, fields that the protocol does not know take far more than their bytes.
constexpr size_t kMaxQueryBytes = size_t{1} << 16;

class Calls final : public CallsBase {
 public:
  using CallsBase::ModelConfig, CallsBase::ModelInfer, CallsBase::ModelMetadata, CallsBase::ModelReady,
      CallsBase::ModelStatistics, CallsBase::RepositoryIndex, CallsBase::RepositoryModelLoad,
      CallsBase::RepositoryModelUnload, CallsBase::ServerLive, CallsBase::ServerMetadata,
      CallsBase::ServerReady;
  Calls(InferService& service, const GrpcServerOptions& options)
      : service_(service),
        wanted_(options.bearer_token.empty() ? "" : "Bearer " + options.bearer_token),
        rate_(options.rate),
        budget_(std::make_shared<MemoryBudget>(options.max_memory_bytes)) {}

  // Anyone may ask whether the server lives and is ready, without a message.
  Reactor* ServerLive(CallbackServerContext* context, const ByteBuffer*, ByteBuffer* bytes) override {
    inference::ServerLiveResponse response;
    response.set_live(service_.live());
    return grpc_finish(*context, write(response, bytes));
  }

  Reactor* ServerReady(CallbackServerContext* context, const ByteBuffer*, ByteBuffer* bytes) override {
    inference::ServerReadyResponse response;
    response.set_ready(service_.ready());
    return grpc_finish(*context, write(response, bytes));
  }

  Reactor* ModelReady(CallbackServerContext* context, const ByteBuffer* bytes, ByteBuffer* to) override {
    return answer<inference::ModelReadyRequest, inference::ModelReadyResponse>(
        *context, *bytes, to, [this](const auto& request, auto& response) {
          response.set_ready(service_.ready() && service_.model(request.name(), request.version()).ok());
          return grpc::Status::OK;
        });
  }

  Reactor* ServerMetadata(CallbackServerContext* context, const ByteBuffer* bytes, ByteBuffer* to) override {
    return answer<inference::ServerMetadataRequest, inference::ServerMetadataResponse>(
        *context, *bytes, to, [](const auto&, auto& response) {
          response.set_name("heddle");
          response.set_version(kVersion);
          for (const char* extension :
               {"statistics", "model_repository", "schedule_policy", "sequence", "sequence(string_id)"})
            response.add_extensions(extension);
          return grpc::Status::OK;
        });
  }

  Reactor* ModelMetadata(CallbackServerContext* context, const ByteBuffer* bytes, ByteBuffer* to) override {
    return answer<inference::ModelMetadataRequest, inference::ModelMetadataResponse>(
        *context, *bytes, to, [this](const auto& request, auto& response) {
          const auto model = service_.model(request.name(), request.version());
          if (!model.ok()) return grpc_status(model.error());
          const ServedModel& m = **model;
          response.set_name(m.name);
          response.add_versions(m.version);
          response.set_platform(m.platform);
          fill(m, m.inputs, *response.mutable_inputs());
          fill(m, m.outputs, *response.mutable_outputs());
          return grpc::Status::OK;
        });
  }

  Reactor* ModelInfer(CallbackServerContext* context, const ByteBuffer* bytes,
                      ByteBuffer* response) override {
    if (!permitted(*context)) return grpc_finish(*context, no_permission());
    if (rate_ && !rate_->take())
      return grpc_finish(*context, {grpc::StatusCode::RESOURCE_EXHAUSTED,
                                    "more than the permitted requests per second; try again later"});
    const auto trace = service_.tracer() != nullptr ? traced(*service_.tracer(), *context) : nullptr;
    // The call's own buffer: what is parsed need not be there twice.
    const auto read = read_infer_message(*const_cast<ByteBuffer*>(bytes), budget_);
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

  Reactor* ModelConfig(CallbackServerContext* context, const ByteBuffer* bytes, ByteBuffer* to) override {
    return answer<inference::ModelConfigRequest, inference::ModelConfigResponse>(
        *context, *bytes, to, [this](const auto& request, auto& response) {
          const auto model = service_.model(request.name(), request.version());
          if (!model.ok()) return grpc_status(model.error());
          *response.mutable_config() = triton_config(**model, service_.planned_rate(request.name()));
          return grpc::Status::OK;
        });
  }

  Reactor* ModelStatistics(CallbackServerContext* context, const ByteBuffer* bytes, ByteBuffer* to) override {
    return answer<inference::ModelStatisticsRequest, inference::ModelStatisticsResponse>(
        *context, *bytes, to, [this](const auto& request, auto& response) {
          if (request.name().empty()) {
            for (const auto& m : service_.models())
              fill(*m, service_.statistics(m->name), *response.add_model_stats());
            return grpc::Status::OK;
          }
          const auto model = service_.model(request.name(), request.version());
          if (!model.ok()) return grpc_status(model.error());
          fill(**model, service_.statistics(request.name()), *response.add_model_stats());
          return grpc::Status::OK;
        });
  }

  Reactor* RepositoryIndex(CallbackServerContext* context, const ByteBuffer* bytes, ByteBuffer* to) override {
    return answer<inference::RepositoryIndexRequest, inference::RepositoryIndexResponse>(
        *context, *bytes, to, [this](const auto& request, auto& response) {
          for (const auto& e : service_.index()) {
            if (request.ready() && e.state != "READY") continue;
            auto& model = *response.add_models();
            model.set_name(e.name);
            model.set_version(e.version);
            model.set_state(e.state);
            model.set_reason(e.reason);
          }
          return grpc::Status::OK;
        });
  }

  Reactor* RepositoryModelLoad(CallbackServerContext* context, const ByteBuffer* bytes,
                               ByteBuffer* to) override {
    return change<inference::RepositoryModelLoadRequest, inference::RepositoryModelLoadResponse>(
        *context, *bytes, to, service_.repository().load);
  }

  Reactor* RepositoryModelUnload(CallbackServerContext* context, const ByteBuffer* bytes,
                                 ByteBuffer* to) override {
    return change<inference::RepositoryModelUnloadRequest, inference::RepositoryModelUnloadResponse>(
        *context, *bytes, to, service_.repository().unload);
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
  static grpc::Status no_permission() {
    return {grpc::StatusCode::UNAUTHENTICATED,
            "this server wants the metadata 'authorization: Bearer TOKEN'"};
  }

  template <class Message>
  static grpc::Status write(const Message& message, ByteBuffer* to) {
    bool own = false;
    return grpc::SerializationTraits<Message>::Serialize(message, to, &own);
  }
  // The message of a permitted call.
  template <class Request>
  grpc::Status read(const CallbackServerContext& context, const ByteBuffer& bytes, Request& request) const {
    if (!permitted(context)) return no_permission();
    if (bytes.Length() > kMaxQueryBytes)
      return {grpc::StatusCode::INVALID_ARGUMENT, "a message of " + std::to_string(bytes.Length()) +
                                                      " bytes, where this call takes at most " +
                                                      std::to_string(kMaxQueryBytes)};
    ByteBuffer copy(bytes);  // of references to its bytes
    if (!grpc::SerializationTraits<Request>::Deserialize(&copy, &request).ok())
      return {grpc::StatusCode::INVALID_ARGUMENT, "this is no " + request.GetTypeName()};
    return grpc::Status::OK;
  }
  template <class Request, class Response, class Fill>
  Reactor* answer(CallbackServerContext& context, const ByteBuffer& bytes, ByteBuffer* to,
                  const Fill& fill_in) const {
    Request request;
    Response response;
    auto status = read(context, bytes, request);
    if (status.ok()) status = fill_in(request, response);
    if (status.ok()) status = write(response, to);
    return grpc_finish(context, status);
  }
  template <class Request, class Response>
  Reactor* change(
      CallbackServerContext& context, const ByteBuffer& bytes, ByteBuffer* to,
      const std::function<void(const std::string&, InferService::Repository::OnDone)>& how) const {
    Request request;
    if (const auto status = read(context, bytes, request); !status.ok()) return grpc_finish(context, status);
    if (!how)
      return grpc_finish(context, {grpc::StatusCode::UNIMPLEMENTED,
                                   "the models of a fleet are loaded and unloaded by its plan"});
    Reactor* const reactor = context.DefaultReactor();
    how(request.model_name(), [reactor, to](const Status& status) {
      reactor->Finish(status.ok() ? write(Response(), to) : grpc_status(status.error()));
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
