#include "heddle/serve/tracer.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <random>
#include <span>
#include <utility>

#include "heddle/base/json.h"
#include "heddle/base/log.h"
#include "heddle/base/random.h"
#include "heddle/base/sync.h"
#include "otlp_json.h"

namespace heddle {

// Where requests wait for the exporting thread. Outlives the tracer while a request holds it.
class RequestTrace::Sink {
 public:
  Sink(size_t max_waiting, size_t enough) : max_waiting_(max_waiting), enough_(enough) {}

  void put(Record record) {
    bool wakes = false;
    {
      const std::lock_guard lock(mutex_);
      if (closed_ || waiting_.size() >= max_waiting_) {
        ++dropped_;
        return;
      }
      waiting_.push_back(std::move(record));
      wakes = waiting_.size() == enough_;
    }
    if (wakes) changed_.notify_one();
  }
  // Waits until there are enough, or for `interval_ns`, or until close(); then at most `most` of them.
  std::vector<Record> take(size_t most, int64_t interval_ns) {
    std::unique_lock lock(mutex_);
    const int64_t until = steady_ns() + interval_ns;
    while (!closed_ && waiting_.size() < enough_ && steady_ns() < until) changed_.wait_until(lock, until);
    std::vector<Record> out;
    while (!waiting_.empty() && out.size() < most) {
      out.push_back(std::move(waiting_.front()));
      waiting_.pop_front();
    }
    return out;
  }
  // From now on what comes is dropped, and nobody waits.
  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    changed_.notify_all();
  }
  bool closed() const {
    const std::lock_guard lock(mutex_);
    return closed_;
  }
  // Until close(), at most so long.
  void wait_closed(int64_t ns) {
    std::unique_lock lock(mutex_);
    const int64_t until = steady_ns() + ns;
    while (!closed_ && steady_ns() < until) changed_.wait_until(lock, until);
  }
  uint64_t dropped() const { return dropped_; }

 private:
  const size_t max_waiting_, enough_;
  std::atomic<uint64_t> dropped_{0};
  mutable Mutex mutex_;  // guards what follows
  Condition changed_;
  std::deque<Record> waiting_;
  bool closed_ = false;
};

RequestTrace::~RequestTrace() {
  record.ended = live_now();
  sink_->put(std::move(record));
}

namespace {

constexpr int kAttempts = 4;
constexpr size_t kMostStateBytes = 512;  // of tracestate, as W3C asks of those who pass it on

uint64_t seed_of_process() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

// A caller's words that end up in another program's document.
std::string shown_state(std::string_view text) {
  const bool plain = std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
  return plain && text.size() <= kMostStateBytes ? std::string(text) : "";
}

class OtlpTracer final : public Tracer {
 public:
  explicit OtlpTracer(const TracerOptions& options)
      : options_(options),
        resource_(otlp_resource(options.service, std::to_string(::getpid()) + "-" + hex_text(ids_.next()))),
        sink_(std::make_shared<RequestTrace::Sink>(options.max_waiting, options.most_at_once)),
        thread_([this] { run(); }) {}
  ~OtlpTracer() override {
    sink_->close();
    thread_.join();
  }

  std::shared_ptr<RequestTrace> begin(const char* protocol, std::string_view traceparent,
                                      std::string_view tracestate) override {
    thread_local Random random(seed_of_process());
    const auto parent = parse_traceparent(traceparent);
    if (parent ? !parent->sampled : !random.chance(options_.sample)) return nullptr;
    RequestTrace::Record record;
    record.began = live_now();
    record.began_wall_ns = wall_ns();
    record.protocol = protocol;
    if (parent) {
      record.context = *parent;
      record.state = shown_state(tracestate);
    } else {
      record.context = {random.next(), random.next() | 1, 0, true};
    }
    record.span = random.next() | 1;
    return std::make_shared<RequestTrace>(sink_, std::move(record));
  }

  TracerCounters counters() const override { return {exported_, sink_->dropped(), failed_}; }

 private:
  void run() {
    const auto interval = static_cast<int64_t>(options_.interval_s * 1e9);
    int64_t give_up_at = INT64_MAX;  // once the tracer ends
    for (;;) {
      const auto requests = sink_->take(options_.most_at_once, interval);
      if (sink_->closed() && give_up_at == INT64_MAX)
        give_up_at = steady_ns() + static_cast<int64_t>(options_.timeout_s * 1e9);
      if (requests.empty()) {
        if (give_up_at != INT64_MAX) return;
        continue;
      }
      if (steady_ns() >= give_up_at) {
        failed_ += requests.size();
        continue;
      }
      send(otlp_body(resource_, requests, ids_), requests.size());
    }
  }

  void send(const std::string& body, size_t count) {
    auto pause = static_cast<int64_t>(options_.retry_s * 1e9);
    std::string why;
    for (int attempt = 0; attempt < kAttempts; ++attempt, pause *= 2) {
      if (attempt > 0) sink_->wait_closed(pause);
      if (attempt > 0 && sink_->closed()) break;
      const auto answer = ask_http(options_.collector, "POST", options_.path, body, options_.timeout_s);
      if (answer.ok() && answer->status / 100 == 2) return sent(*answer, count);
      why = answer.ok() ? "the collector answers with status " + std::to_string(answer->status)
                        : answer.error().to_string();
      // OTLP: only these may succeed later.
      const bool may_succeed = !answer.ok() || answer->status == 429 || answer->status == 502 ||
                               answer->status == 503 || answer->status == 504;
      if (!may_succeed) break;
    }
    failed_ += count;
    if (!std::exchange(away_, true)) log_line(LogLevel::kWarning, "traces cannot be exported: " + why);
  }

  // A part may be refused. Its spans are counted as if each were of another request, as far as there are so many.
  void sent(const HttpAnswer& answer, size_t count) {
    if (std::exchange(away_, false)) log_line(LogLevel::kInfo, "traces are exported again");
    uint64_t refused = 0;
    std::string why;
    if (const auto json = parse_json(answer.body); json.ok() && json->is_object()) {
      const Json partial = json->value("partialSuccess", Json::object());
      if (partial.is_object() && partial.contains("rejectedSpans")) {
        const Json& n = partial["rejectedSpans"];  // 64 bits are strings in this encoding
        refused = n.is_number_unsigned() ? n.get<uint64_t>()
                  : n.is_string()        ? parse_digits(n.get<std::string>()).value_or(0)
                                         : 0;
        if (partial.contains("errorMessage") && partial["errorMessage"].is_string())
          why = partial["errorMessage"].get<std::string>();
      }
    }
    refused = std::min<uint64_t>(refused, count);
    failed_ += refused;
    exported_ += count - refused;
    if (refused > 0 && !std::exchange(refuses_, true))
      log_line(LogLevel::kWarning, "the collector refuses spans: " + why.substr(0, 300));
  }

  const TracerOptions options_;
  Random ids_{seed_of_process()};  // of the thread, and of the construction before it
  const std::string resource_;
  const std::shared_ptr<RequestTrace::Sink> sink_;
  std::atomic<uint64_t> exported_{0}, failed_{0};
  bool away_ = false, refuses_ = false;  // of the thread
  Thread thread_;
};

}  // namespace

Result<std::unique_ptr<Tracer>> Tracer::create(const TracerOptions& options) {
  if (!(options.sample >= 0 && options.sample <= 1) || options.max_waiting == 0 ||
      options.most_at_once == 0 || !(options.interval_s > 0) || !(options.timeout_s > 0) ||
      !(options.retry_s >= 0))
    return invalid_input("a tracer samples a share of 0 to 1 of the traces, and sends at least one");
  return std::unique_ptr<Tracer>(std::make_unique<OtlpTracer>(options));
}

}  // namespace heddle
