#include "serve_bench.h"

#include <grpcpp/grpcpp.h>
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <future>
#include <thread>
#include <vector>

#include "heddle/base/quantiles.h"
#include "heddle/cluster/discover.h"
#include "heddle/runtime/affinity.h"
#include "heddle/serve/grpc_server.h"
#include "heddle/serve/http_server.h"
#include "heddle/serve/rest_api.h"
#include "load/load_client.h"
#include "machine/plan_runner.h"
#include "open_inference.grpc.pb.h"

namespace heddle::bench {
namespace {

using inference::GRPCInferenceService;
using inference::ModelInferRequest;
using inference::ModelInferResponse;

constexpr int64_t kCopiedBytes = 1024;
constexpr int kUnderWay = 64, kConnections = 8;
constexpr double kSlice_s = .25;
constexpr TimeNs kSlo = 60'000'000'000;

// What a server costs without a backend: the outputs are the inputs.
class CopyRunner final : public DeviceRunner {
 public:
  Status run(std::span<LiveRequest* const> batch) override {
    for (auto* r : batch) {
      const auto& row = static_cast<const TensorRow&>(*r);
      std::memcpy(row.outputs[0], row.inputs[0], kCopiedBytes);
    }
    return {};
  }
};

struct Subject {
  std::shared_ptr<const ServedModel> model;
  std::shared_ptr<DeviceRunner> runner;
};

Result<Subject> make_subject(const std::string& path) {
  if (path.empty()) {
    auto model = std::make_shared<ServedModel>();
    model->name = "copy";
    model->version = "1";
    model->slo_us = us_from_ns(kSlo);
    model->inputs = {{"x", DType::kU8, {kCopiedBytes}, kCopiedBytes}};
    model->outputs = {{"y", DType::kU8, {kCopiedBytes}, kCopiedBytes}};
    return Subject{model, std::make_shared<CopyRunner>()};
  }
  ModelSettings settings;
  settings.max_batch = 1;
  HEDDLE_ASSIGN_OR_RETURN(const auto sources, find_models(std::vector<std::string>{path}, settings));
  HEDDLE_ASSIGN_OR_RETURN(const auto local, load_local_model(sources.front()));
  local->served.slo_us = us_from_ns(kSlo);
  HEDDLE_ASSIGN_OR_RETURN(const auto cluster, discover_local({}));
  const auto& devices = cluster->devices();
  const auto most = std::max_element(devices.begin(), devices.end(), [](const Device& a, const Device& b) {
    return a.cores.size() < b.cores.size();
  });
  if (most == devices.end()) return not_found("this machine has no device");
  HEDDLE_ASSIGN_OR_RETURN(auto runner, PlanRunner::create(local, *most));
  return Subject{std::shared_ptr<const ServedModel>(local, &local->served), std::move(runner)};
}

// One pool of one device.
Deployment one_device(const std::string& model) {
  Deployment d;
  d.models.push_back({model, kSlo, 1, {0}});
  d.classes.push_back({"device", 0, 1, 1});
  d.devices.push_back(VirtualDevice{});
  d.num_servers = 1;
  DevicePool pool;
  pool.num_devices = 1;
  pool.run_ns = {1000};
  pool.role = {model, 0, 1, "device", 1};
  DeployedPipeline pipeline;
  pipeline.batch = 1;
  pipeline.rate_per_s = 1;
  pipeline.partitions.push_back(std::move(pool));
  d.pipelines.push_back(std::move(pipeline));
  return d;
}

class PlainEcho final : public GRPCInferenceService::CallbackService {
 public:
  grpc::ServerUnaryReactor* ModelInfer(grpc::CallbackServerContext* context, const ModelInferRequest* request,
                                       ModelInferResponse* response) override {
    response->set_model_name(request->model_name());
    for (const auto& tensor : request->raw_input_contents()) response->add_raw_output_contents(tensor);
    auto* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

// Closed loops of calls over some channels; each answered call starts the next one.
class GrpcLoops {
 public:
  GrpcLoops(int port, const ModelInferRequest& request) : request_(request) {
    for (int i = 0; i < kConnections; ++i) {
      grpc::ChannelArguments arguments;
      arguments.SetInt("heddle.channel", i);  // else they would share one connection
      arguments.SetMaxReceiveMessageSize(-1);
      stubs_.push_back(GRPCInferenceService::NewStub(grpc::CreateCustomChannel(
          "127.0.0.1:" + std::to_string(port), grpc::InsecureChannelCredentials(), arguments)));
    }
  }

  // Answers per second over about `seconds`.
  Result<double> rate(double seconds) {
    answered_ = 0;
    failed_ = 0;
    open_ = kUnderWay;
    done_ = std::promise<void>();
    const TimeNs begin = live_now();
    until_ = begin + ns_from_us(seconds * 1e6);
    std::deque<Call> calls(kUnderWay);
    for (size_t i = 0; i < calls.size(); ++i) {
      calls[i].stub = stubs_[i % stubs_.size()].get();
      start(calls[i]);
    }
    done_.get_future().wait();
    if (failed_ > 0) return internal_error("gRPC calls failed: " + why_);
    return static_cast<double>(answered_) / seconds_from_ns(live_now() - begin);
  }

  Status call() {
    grpc::ClientContext context;
    ModelInferResponse response;
    const auto status = stubs_.front()->ModelInfer(&context, request_, &response);
    if (!status.ok()) return internal_error("the gRPC call failed: " + status.error_message());
    return {};
  }

 private:
  struct Call {
    GRPCInferenceService::Stub* stub = nullptr;
    std::unique_ptr<grpc::ClientContext> context;
    ModelInferResponse response;
  };

  void start(Call& call) {
    call.context = std::make_unique<grpc::ClientContext>();
    call.response.Clear();
    call.stub->async()->ModelInfer(call.context.get(), &request_, &call.response,
                                   [this, &call](const grpc::Status& status) { answered(call, status); });
  }

  void answered(Call& call, const grpc::Status& status) {
    if (status.ok()) {
      ++answered_;
    } else if (failed_++ == 0) {
      why_ = status.error_message();
    }
    if (status.ok() && live_now() < until_) return start(call);
    if (--open_ == 0) done_.set_value();
  }

  const ModelInferRequest& request_;
  std::vector<std::unique_ptr<GRPCInferenceService::Stub>> stubs_;
  std::atomic<int64_t> answered_{0}, failed_{0};
  std::atomic<int> open_{0};
  TimeNs until_ = 0;
  std::string why_;
  std::promise<void> done_;
};

// The same by HTTP, with the binary extension; one connection has one request under way.
class HttpLoops {
 public:
  HttpLoops(int port, const ServedModel& model, const std::string& tensors) : tensors_(tensors) {
    target_.port = port;
    std::string json = R"({"inputs":[)";
    for (const auto& t : model.inputs) {
      if (json.back() == '}') json += ',';
      json += R"({"name":")" + t.name + R"(","datatype":")" + protocol_name(t.dtype) + R"(","shape":[)";
      for (size_t i = 0; i < t.row.size(); ++i) json += (i > 0 ? "," : "") + std::to_string(t.row[i]);
      json += R"(],"parameters":{"binary_data_size":)" + std::to_string(t.row_bytes) + "}}";
    }
    json += R"(],"parameters":{"binary_data_output":true}})";
    head_ = request_head(target_, "POST", "/v2/models/" + model.name + "/infer") +
            "Inference-Header-Content-Length: " + std::to_string(json.size()) +
            "\r\nContent-Length: " + std::to_string(json.size() + tensors.size()) + "\r\n\r\n" + json;
  }

  Status call() {
    HEDDLE_ASSIGN_OR_RETURN(const auto n, run(1, [](int64_t answered) { return answered >= 1; }));
    return n == 1 ? Status() : internal_error("the HTTP call failed");
  }

  Result<double> rate(double seconds) {
    const TimeNs begin = live_now(), until = begin + ns_from_us(seconds * 1e6);
    HEDDLE_ASSIGN_OR_RETURN(const auto n, run(kUnderWay, [until](int64_t) { return live_now() >= until; }));
    return static_cast<double>(n) / seconds_from_ns(live_now() - begin);
  }

 private:
  // Requests on `width` connections until `enough`; the number of answers.
  template <class Enough>
  Result<int64_t> run(size_t width, const Enough& enough) {
    HEDDLE_ASSIGN_OR_RETURN(const auto address, find_address(target_, 1));
    while (connections_.size() < width) {
      connections_.push_back(std::make_unique<LoadConnection>());
      HEDDLE_RETURN_IF_ERROR(connections_.back()->open(target_, address));
    }
    std::vector<pollfd> waits(width);
    for (size_t i = 0; i < width; ++i) {
      connections_[i]->send(head_, tensors_);
      waits[i] = {connections_[i]->fd(), POLLOUT, 0};
    }
    int64_t answered = 0;
    size_t open = width;
    while (open > 0) {
      ::poll(waits.data(), waits.size(), 1000);
      for (size_t i = 0; i < width; ++i) {
        if (waits[i].fd < 0 || waits[i].revents == 0) continue;
        auto step = connections_[i]->advance();
        while (step == LoadConnection::Step::kDone) {
          if (connections_[i]->status() != 200)
            return internal_error("an HTTP call failed: " + connections_[i]->body().substr(0, 200));
          ++answered;
          if (enough(answered)) break;
          connections_[i]->send(head_, tensors_);
          step = connections_[i]->advance();
        }
        if (step == LoadConnection::Step::kBroken) return io_error("an HTTP connection broke");
        if (step == LoadConnection::Step::kDone) {
          waits[i].fd = -1;
          --open;
        } else {
          waits[i].events = step == LoadConnection::Step::kWantsRead ? POLLIN : POLLOUT;
        }
      }
    }
    return answered;
  }

  LoadTarget target_;
  const std::string& tensors_;
  std::string head_;
  std::vector<std::unique_ptr<LoadConnection>> connections_;
};

class Bench {
 public:
  explicit Bench(Subject subject) : subject_(std::move(subject)) {
    const auto& m = *subject_.model;
    for (const auto& t : m.inputs) tensors_.append(static_cast<size_t>(t.row_bytes), '\0');
    message_.set_model_name(m.name);
    size_t at = 0;
    for (const auto& t : m.inputs) {
      auto& input = *message_.add_inputs();
      input.set_name(t.name);
      input.set_datatype(protocol_name(t.dtype));
      for (const auto d : t.row) input.add_shape(d);
      message_.add_raw_input_contents(tensors_.substr(at, static_cast<size_t>(t.row_bytes)));
      row_.inputs.push_back(reinterpret_cast<const std::byte*>(tensors_.data()) + at);
      at += static_cast<size_t>(t.row_bytes);
    }
    for (const auto& t : m.outputs) {
      outputs_.emplace_back(static_cast<size_t>(t.row_bytes));
      row_.outputs.push_back(outputs_.back().data());
    }
  }
  ~Bench() {
    if (echo_) echo_->Shutdown();
    if (http_) http_->stop(1);
    if (grpc_) grpc_->stop(1);
    service_.stop(1);
  }

  Status start() {
    LivePlaneOptions options;
    options.scheduler = SchedulerKind::kReactive;
    auto next = std::make_unique<Generation>();
    next->models.push_back(subject_.model);
    HEDDLE_ASSIGN_OR_RETURN(next->plane,
                            LivePlane::create(one_device(subject_.model->name), options, {subject_.runner}));
    service_.serve(std::move(next));
    HEDDLE_ASSIGN_OR_RETURN(grpc_, GrpcServer::start({}, service_));
    HEDDLE_ASSIGN_OR_RETURN(http_, start_rest(service_));
    HEDDLE_ASSIGN_OR_RETURN(
        collector_, HttpServer::start({}, [](const HttpHead&, const HttpBody&, const HttpReply& reply) {
          reply.send({.body = "{}"});
        }));
    TracerOptions traces;
    traces.collector.port = collector_->port();
    HEDDLE_ASSIGN_OR_RETURN(traces_all_, Tracer::create(traces));
    traces.sample = .01;
    HEDDLE_ASSIGN_OR_RETURN(traces_some_, Tracer::create(traces));
    grpc::ServerBuilder builder;
    builder.SetMaxReceiveMessageSize(-1);
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &echo_port_);
    builder.RegisterService(&echo_service_);
    echo_ = builder.BuildAndStart();
    if (!echo_ || echo_port_ == 0) return io_error("no port for the plain gRPC echo");
    return {};
  }

  Result<AddedLatency> latency(double seconds, const std::function<bool()>& stop) {
    GrpcLoops grpc(grpc_->port(), message_), echo(echo_port_, message_);
    HttpLoops http(http_->port(), *subject_.model, tensors_);
    std::vector<double> us[5];
    const TimeNs until = live_now() + ns_from_us(seconds * 1e6);
    for (int turn = 0; turn < 20 || (live_now() < until && !stop()); ++turn) {
      const bool warm = turn >= 10;
      double direct_us = 0;
      const auto timed = [&](int kind, const auto& call) -> Status {
        const TimeNs begin = live_now();
        HEDDLE_RETURN_IF_ERROR(call());
        const double took = us_from_ns(live_now() - begin);
        if (kind == 0) direct_us = took;
        if (warm) us[kind].push_back(kind == 0 ? took : took - direct_us);
        // Low load: the threads that served have gone to sleep again.
        std::this_thread::sleep_for(std::chrono::microseconds(500));
        return {};
      };
      HEDDLE_RETURN_IF_ERROR(timed(0, [this] { return direct(); }));
      HEDDLE_RETURN_IF_ERROR(timed(1, [this] { return in_process(); }));
      HEDDLE_RETURN_IF_ERROR(timed(2, [&grpc] { return grpc.call(); }));
      HEDDLE_RETURN_IF_ERROR(timed(3, [&http] { return http.call(); }));
      HEDDLE_RETURN_IF_ERROR(timed(4, [&echo] { return echo.call(); }));
    }
    return AddedLatency{median_us(us[0]), median_us(us[1]), median_us(us[2]), median_us(us[3]),
                        median_us(us[4])};
  }

  Result<ServedRate> rate(double seconds, const std::function<bool()>& stop) {
    GrpcLoops grpc(grpc_->port(), message_), echo(echo_port_, message_);
    HttpLoops http(http_->port(), *subject_.model, tensors_);
    std::vector<double> per_s[5];
    const TimeNs until = live_now() + ns_from_us(seconds * 1e6);
    for (int turn = 0; turn < 4 || (live_now() < until && !stop()); ++turn) {
      HEDDLE_ASSIGN_OR_RETURN(const auto a, echo.rate(kSlice_s));
      HEDDLE_ASSIGN_OR_RETURN(const auto b, grpc.rate(kSlice_s));
      HEDDLE_ASSIGN_OR_RETURN(const auto c, http.rate(kSlice_s));
      HEDDLE_ASSIGN_OR_RETURN(const auto d, traced_rate(http, *traces_all_));
      HEDDLE_ASSIGN_OR_RETURN(const auto e, traced_rate(http, *traces_some_));
      if (turn == 0) continue;  // connections are made
      per_s[3].push_back(d);
      per_s[4].push_back(e);
      per_s[0].push_back(a);
      per_s[1].push_back(b);
      per_s[2].push_back(c);
    }
    return ServedRate{median_us(per_s[0]), median_us(per_s[1]), median_us(per_s[2]), median_us(per_s[3]),
                      median_us(per_s[4])};
  }

 private:
  // No request is under way between two slices, so the tracer may change there.
  Result<double> traced_rate(HttpLoops& http, Tracer& tracer) {
    service_.set_tracer(&tracer);
    auto rate = http.rate(kSlice_s);
    service_.set_tracer(nullptr);
    return rate;
  }

  Status direct() {
    const AffinityGuard bound(subject_.runner->cores());
    LiveRequest* const row = &row_;
    return subject_.runner->run({&row, 1});
  }

  Status in_process() {
    InferRequest request;
    request.model = subject_.model->name;
    for (size_t i = 0; i < subject_.model->inputs.size(); ++i) {
      const auto& t = subject_.model->inputs[i];
      request.inputs.push_back({t.name, t.dtype, t.row, row_.inputs[i], t.row_bytes, nullptr});
    }
    std::promise<Status> answered;
    service_.infer(std::move(request), [&answered](Result<InferResponse> result) {
      answered.set_value(result.ok() ? Status() : Status(std::move(result).error()));
    });
    return answered.get_future().get();
  }

  // The direct call's row: nothing settles it.
  struct OwnRow final : TensorRow {
    void settled() override {}
  };

  Subject subject_;
  std::string tensors_;
  ModelInferRequest message_;
  OwnRow row_;
  std::deque<std::vector<std::byte>> outputs_;
  std::unique_ptr<HttpServer> collector_;  // of traces: reads them and does nothing else
  std::unique_ptr<Tracer> traces_all_, traces_some_;
  InferService service_;
  std::unique_ptr<GrpcServer> grpc_;
  std::unique_ptr<HttpServer> http_;
  PlainEcho echo_service_;
  std::unique_ptr<grpc::Server> echo_;
  int echo_port_ = 0;
};

}  // namespace

Result<ServeBench> bench_serving(const std::string& path, double seconds, const std::function<bool()>& stop) {
  HEDDLE_ASSIGN_OR_RETURN(auto subject, make_subject(path));
  Bench bench(std::move(subject));
  HEDDLE_RETURN_IF_ERROR(bench.start());
  ServeBench out;
  HEDDLE_ASSIGN_OR_RETURN(out.latency, bench.latency(seconds, stop));
  HEDDLE_ASSIGN_OR_RETURN(out.rate, bench.rate(seconds, stop));
  return out;
}

}  // namespace heddle::bench
