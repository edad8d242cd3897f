// A load by gRPC: calls without threads of their own, answers as they come.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <unordered_set>
#include <vector>

#include "load_offer.h"
#include "load_run.h"
#include "open_inference.grpc.pb.h"
#include "protocol/grpc_message.h"

namespace heddle {
namespace {

constexpr size_t kMostChannels = 8;
constexpr char kMethod[] = "/inference.GRPCInferenceService/ModelInfer";

struct InferCall {
  size_t request = 0;
  grpc::ClientContext context;
  grpc::ByteBuffer question, answer;
  grpc::Status status;
  TimeNs done = 0;
  bool given_up = false;
};

class GrpcLoad final : public LoadRun {
 public:
  GrpcLoad(const LoadTarget& target, std::span<const ModelUnderLoad> models,
           std::span<const Arrival> arrivals, const LoadOptions& options)
      : LoadRun(models, arrivals, options), target_(target) {
    for (const auto& m : models) {
      auto& messages = messages_.emplace_back();
      for (const auto& body : m.bodies) messages.emplace_back(body.grpc_message);
    }
  }

  ~GrpcLoad() override {
    for (auto* call : open_) call->context.TryCancel();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return done_.size() == open_.size(); });
    for (const auto* call : open_) delete call;
  }

 private:
  // A message is its fields one after the other, so a request's own go behind what all requests of a model share.
  grpc::ByteBuffer question_of(size_t request) const {
    inference::ModelInferRequest own;
    own.set_id(std::to_string(request));
    if (const auto* step = step_of(request)) {
      auto& parameters = *own.mutable_parameters();
      parameters["sequence_id"].set_string_param(step->id);
      parameters["sequence_start"].set_bool_param(step->start);
      parameters["sequence_end"].set_bool_param(step->end);
    }
    const grpc::Slice parts[] = {messages_[model_index(request)][model_of(request).body_index(request)],
                                 grpc::Slice(own.SerializeAsString())};
    return {parts, std::size(parts)};
  }

  Status send_waiting() override {
    while (any_waits() && open_.size() < options_.max_connections) {
      auto& stub = next_stub();
      auto* call = new InferCall;
      open_.insert(call);
      call->request = front();
      call->question = question_of(front());
      authorize(target_, call->context);
      sent(front());
      pop();
      stub.UnaryCall(&call->context, kMethod, {}, &call->question, &call->answer,
                     [this, call](grpc::Status status) { ended(*call, std::move(status)); });
    }
    return {};
  }

  grpc::GenericStub& next_stub() {
    const size_t wanted = std::min(kMostChannels, options_.max_connections);
    const size_t i = next_stub_++ % wanted;
    if (i >= stubs_.size()) {
      stubs_.push_back(std::make_unique<grpc::GenericStub>(load_channel(target_, static_cast<int>(i))));
      ++result_.connections;
    }
    return *stubs_[i];
  }

  // On a thread of gRPC.
  void ended(InferCall& call, grpc::Status status) {
    const TimeNs now = live_now();
    const std::lock_guard lock(mutex_);
    call.status = std::move(status);
    call.done = now;
    done_.push_back(&call);
    changed_.notify_one();  // under the lock: the load may be gone once all calls have ended
  }

  void wait(TimeNs until) override {
    std::vector<InferCall*> done;
    {
      std::unique_lock lock(mutex_);
      changed_.wait_until(lock, std::chrono::steady_clock::time_point(std::chrono::nanoseconds(until)),
                          [this] { return !done_.empty(); });
      std::swap(done, done_);
    }
    for (auto* call : done) {
      answered(*call);
      open_.erase(call);
      delete call;
    }
  }

  void answered(InferCall& call) {
    const size_t i = call.request;
    if (!call.status.ok()) {
      if (call.given_up) return settle(i, kUnanswered, "no answer came in time");
      // A deadline is the server's word: the calls themselves have none.
      return settle(i, http_status(call.status.error_code()),
                    call.status.error_message().empty() ? "without a message" : call.status.error_message(),
                    call.done);
    }
    inference::ModelInferResponse answer;
    const bool read =
        grpc::SerializationTraits<inference::ModelInferResponse>::Deserialize(&call.answer, &answer).ok();
    if (!read || answer.id() != std::to_string(i)) return settle_malformed(i);
    const auto& parameters = answer.parameters();
    const auto batch = parameters.find("batch_size");
    const auto queue = parameters.find("queue_us");
    note_answer(i, batch == parameters.end() ? 0 : batch->second.int64_param(),
                queue == parameters.end() || !(queue->second.double_param() <= 1e12)
                    ? -1
                    : queue->second.double_param());
    settle(i, 200, "", call.done);
  }

  void give_up(TimeNs oldest) override {
    for (auto* call : open_) {
      if (call->given_up || due(call->request) > oldest) continue;
      call->given_up = true;
      call->context.TryCancel();
    }
  }

  const LoadTarget& target_;
  std::vector<std::vector<grpc::Slice>> messages_;  // [model][body]
  std::vector<std::unique_ptr<grpc::GenericStub>> stubs_;
  size_t next_stub_ = 0;
  std::unordered_set<InferCall*> open_;
  std::mutex mutex_;  // guards what follows, and what ended() writes
  std::condition_variable changed_;
  std::vector<InferCall*> done_;
};

}  // namespace

std::unique_ptr<LoadRun> grpc_load(const LoadTarget& target, std::span<const ModelUnderLoad> models,
                                   std::span<const Arrival> arrivals, const LoadOptions& options) {
  return std::make_unique<GrpcLoad>(target, models, arrivals, options);
}

}  // namespace heddle
