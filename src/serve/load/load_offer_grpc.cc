// What a server offers, asked by gRPC: models by the repository's index, their inputs by their metadata, and
// what the plan promises by the parameters of their configuration.
#include <chrono>
#include <cstdlib>

#include "heddle/base/json.h"
#include "load_offer.h"
#include "open_inference.grpc.pb.h"
#include "protocol/grpc_ends.h"
#include "protocol/model_config.h"

namespace heddle {
namespace {

constexpr auto kAskTime = std::chrono::seconds(30);

class Asker {
 public:
  explicit Asker(const LoadTarget& target)
      : target_(target), stub_(inference::GRPCInferenceService::NewStub(load_channel(target, 0))) {}

  template <class Question, class Answer>
  Status ask(grpc::Status (inference::GRPCInferenceService::Stub::*call)(grpc::ClientContext*,
                                                                         const Question&, Answer*),
             const char* name, const Question& question, Answer& answer) const {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kAskTime);
    authorize(target_, context);
    const auto status = (stub_.get()->*call)(&context, question, &answer);
    if (status.ok()) return {};
    const auto where = std::string(target_.tls ? "grpcs://" : "grpc://") + target_.host + ":" +
                       std::to_string(target_.port) + " " + name;
    if (status.error_code() == grpc::StatusCode::UNAVAILABLE ||
        status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED)
      return io_error("no gRPC server answers there (" + status.error_message() +
                      "); expected the port that `heddle serve` prints behind grpc://" +
                      (target_.tls ? "" : ", or grpcs:// where it encrypts"))
          .with_context(where);
    return Error(status.error_code() == grpc::StatusCode::NOT_FOUND ? Code::kNotFound : Code::kInvalidInput,
                 status.error_message())
        .with_context(where);
  }

  Result<OfferedModel> describe(const std::string& name) const {
    using Stub = inference::GRPCInferenceService::Stub;
    OfferedModel model;
    model.name = name;
    inference::ModelConfigRequest of_config;
    inference::ModelConfigResponse config;
    of_config.set_name(name);
    HEDDLE_RETURN_IF_ERROR(ask(&Stub::ModelConfig, "ModelConfig", of_config, config));
    HEDDLE_ASSIGN_OR_RETURN(model.slo_us, promised(name, config.config(), kSloParameter));
    HEDDLE_ASSIGN_OR_RETURN(model.planned_rate_per_s, promised(name, config.config(), kRateParameter));
    model.keeps_state = config.config().has_sequence_batching();
    inference::ModelMetadataRequest of_metadata;
    inference::ModelMetadataResponse metadata;
    of_metadata.set_name(name);
    HEDDLE_RETURN_IF_ERROR(ask(&Stub::ModelMetadata, "ModelMetadata", of_metadata, metadata));
    for (const auto& t : metadata.inputs())
      model.inputs.push_back({t.name(), t.datatype(), {t.shape().begin(), t.shape().end()}});
    return model;
  }

 private:
  static Result<double> promised(const std::string& name, const inference::ModelConfig& config,
                                 const char* parameter) {
    const auto it = config.parameters().find(parameter);
    const double value =
        it == config.parameters().end() ? -1 : std::strtod(it->second.string_value().c_str(), nullptr);
    if (!(value >= 0 && value <= 1e15))
      return invalid_input("model '" + name + "': its configuration has no parameter '" + parameter +
                           "', by which `heddle serve` tells what it plans");
    return value;
  }

  const LoadTarget& target_;
  std::unique_ptr<inference::GRPCInferenceService::Stub> stub_;
};

}  // namespace

std::shared_ptr<grpc::Channel> load_channel(const LoadTarget& target, int number) {
  grpc::ChannelArguments arguments;
  arguments.SetInt("heddle.channel", number);  // else channels of one address share a connection
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  return grpc_channel(host_port(target.host, target.port), target.tls != nullptr, target.grpc_trusted,
                      arguments);
}

void authorize(const LoadTarget& target, grpc::ClientContext& context) {
  if (!target.bearer_token.empty()) context.AddMetadata("authorization", "Bearer " + target.bearer_token);
}

Result<Offer> grpc_offer(const LoadTarget& target, std::span<const std::string> only) {
  const Asker server(target);
  inference::RepositoryIndexRequest question;
  inference::RepositoryIndexResponse index;
  question.set_ready(true);
  HEDDLE_RETURN_IF_ERROR(server.ask(&inference::GRPCInferenceService::Stub::RepositoryIndex,
                                    "RepositoryIndex", question, index));
  Offer offer;
  for (const auto& m : index.models()) {
    offer.names.push_back(m.name());
    if (!is_wanted(only, m.name())) continue;
    HEDDLE_ASSIGN_OR_RETURN(auto model, server.describe(m.name()));
    offer.models.push_back(std::move(model));
  }
  return offer;
}

std::string grpc_request(const OfferedModel& model, std::span<const int64_t> bytes,
                         const std::string& tensors) {
  inference::ModelInferRequest message;
  message.set_model_name(model.name);
  size_t at = 0;
  for (size_t i = 0; i < model.inputs.size(); ++i) {
    auto& input = *message.add_inputs();
    input.set_name(model.inputs[i].name);
    input.set_datatype(model.inputs[i].datatype);
    for (const auto d : model.inputs[i].shape) input.add_shape(d);
    message.add_raw_input_contents(tensors.substr(at, static_cast<size_t>(bytes[i])));
    at += static_cast<size_t>(bytes[i]);
  }
  return message.SerializeAsString();
}

}  // namespace heddle
