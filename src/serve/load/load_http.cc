// A load by HTTP: one request at a time on each connection, all on one thread.
#include <poll.h>
#include <sys/epoll.h>

#include <algorithm>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "heddle/base/json.h"
#include "load_addresses.h"
#include "load_client.h"
#include "load_run.h"

namespace heddle {
namespace {

constexpr TimeNs kResendAfter = kNsPerSecond / 20;
constexpr double kPatienceInSlos = 2;

struct Connection {
  LoadConnection io;
  size_t server = 0;
  SocketAddress address;
  size_t request = 0;
  TimeNs sent_at = 0;
  bool busy = false;
  uint32_t armed = 0;  // epoll's events
};

class HttpLoad final : public LoadRun {
 public:
  HttpLoad(const LoadTarget& target, std::span<const ModelUnderLoad> models,
           std::span<const Arrival> arrivals, const LoadOptions& options, const FindAddresses& find)
      : LoadRun(models, arrivals, options),
        epoll_(::epoll_create1(EPOLL_CLOEXEC)),
        resends_(arrivals.size()) {
    const auto add = [&](const LoadTarget& server) {
      servers_.push_back({&server, ServerAddresses([find, &server] { return find(server); })});
    };
    add(target);
    for (const LoadTarget& standby : options.standbys) add(standby);
    for (const auto& server : servers_) server.addresses.wait();
    raise_file_limit();
  }

 private:
  Status send_waiting() override {
    while (!later_.empty() && later_.front().at <= live_now()) {
      const auto again = std::move(later_.front());
      later_.pop_front();
      if (due(again.request) > oldest() && !stopped())
        wait_again(again.request);
      else
        settle(again.request, kUnanswered, "no server has answered it in time, at last: " + again.reason);
    }
    while (any_waits()) {
      Connection* c = nullptr;
      if (!idle_.empty()) {
        c = idle_.back();
        idle_.pop_back();
        if (c->server != server_) {
          close(*c);
          continue;
        }
      } else if (connections_.size() < options_.max_connections) {
        auto fresh = std::make_unique<Connection>();
        fresh->server = server_;
        if (auto status = connect(*fresh); !status.ok()) {
          if (fresh->io.lacks_files() && !connections_.empty()) return {};  // one of them will be free
          if (result_.connections == 0 && servers_.size() == 1) return status;
          unanswered(front(), server_, kUnanswered, status.error().message());
          pop();
          continue;
        }
        ++result_.connections;
        epoll_event e = {};
        e.data.ptr = fresh.get();
        e.events = fresh->armed = EPOLLOUT;
        ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fresh->io.fd(), &e);
        c = fresh.get();
        connections_.push_back(std::move(fresh));
      } else {
        return {};
      }
      begin(*c, front());
      pop();
    }
    return {};
  }

  Status connect(Connection& c) {
    Server& server = servers_[c.server];
    Status status;
    for (size_t tried = 0; tried == 0 || tried < server.addresses.size(); ++tried) {
      HEDDLE_ASSIGN_OR_RETURN(c.address, server.addresses.current());
      status = c.io.open(*server.target, c.address);
      if (status.ok() || c.io.lacks_files()) break;
      server.addresses.refused(c.address);
    }
    return status;
  }

  void begin(Connection& c, size_t request) {
    const auto& model = model_of(request);
    const auto& body = model.body(request);
    std::string json =
        "{\"id\":\"" + std::to_string(request) + R"(","parameters":{"binary_data_output":true)";
    if (const auto* step = step_of(request))
      json += R"(,"sequence_id":")" + step->id + R"(","sequence_start":)" + (step->start ? "true" : "false") +
              R"(,"sequence_end":)" + (step->end ? "true" : "false");
    json += "}," + body.inputs_json;
    auto head = request_head(*servers_[c.server].target, "POST",
                             "/v2/models/" + percent_encode(model.name) + "/infer");
    head += "Inference-Header-Content-Length: " + std::to_string(json.size()) +
            "\r\nContent-Length: " + std::to_string(json.size() + body.tensors.size()) + "\r\n\r\n" + json;
    c.request = request;
    c.sent_at = live_now();
    c.busy = true;
    c.io.send(std::move(head), body.tensors);
    if (resends_[request] == 0) sent(request);
    advance(c);
  }

  void advance(Connection& c) {
    const auto step = c.io.advance();
    if (step == LoadConnection::Step::kWantsRead) return arm(c, EPOLLIN);
    if (step == LoadConnection::Step::kWantsWrite) return arm(c, EPOLLOUT);
    if (step == LoadConnection::Step::kBroken) {
      if (!c.io.sent_any()) servers_[c.server].addresses.refused(c.address);
      if (c.busy) unanswered(c.request, c.server, kUnanswered, "the connection broke");
      return close(c);
    }
    answered(c);
    if (!c.io.keep_alive()) return close(c);
    c.busy = false;
    arm(c, EPOLLIN);
    idle_.push_back(&c);
  }

  // For so long that another server is worth a try.
  bool hangs(const Connection& c) const {
    return live_now() - c.sent_at > ns_from_us(kPatienceInSlos * model_of(c.request).slo_us);
  }

  // Its outcome, or where there are standbys another try. `server`: that it was sent to.
  void unanswered(size_t request, size_t server, int status, const std::string& reason) {
    if (servers_.size() == 1 || (status != kUnanswered && status != 503))
      return settle(request, status, reason);
    if (server == server_) server_ = (server_ + 1) % servers_.size();
    ++resends_[request];
    ++result_.resent;
    later_.push_back({live_now() + kResendAfter, request, reason});
  }

  void arm(Connection& c, uint32_t events) {
    if (c.armed == events) return;
    epoll_event e = {};
    e.data.ptr = &c;
    e.events = c.armed = events;
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, c.io.fd(), &e);
  }

  // The object stays until the end: events of this turn may still name it.
  void close(Connection& c) {
    c.busy = false;
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, c.io.fd(), nullptr);
    std::erase(idle_, &c);
    for (auto& owned : connections_)
      if (owned.get() == &c) {
        graves_.push_back(std::move(owned));
        std::swap(owned, connections_.back());
        connections_.pop_back();
        return;
      }
  }

  void answered(Connection& c) {
    size_t json_bytes = c.io.body().size();
    for (const auto& [name, value] : c.io.headers())
      if (name == "inference-header-content-length")
        json_bytes = std::min<size_t>(json_bytes, parse_digits(value).value_or(0));
    const auto json = parse_json(std::string_view(c.io.body()).substr(0, json_bytes));
    if (c.io.status() != 200) {
      const auto reason = error_text(json);
      return unanswered(c.request, c.server, c.io.status(), reason.empty() ? "without a message" : reason);
    }
    const bool whole =
        json.ok() && json->is_object() && json->value("id", Json()) == std::to_string(c.request);
    if (!whole) return settle_malformed(c.request);
    if (json->contains("parameters") && (*json)["parameters"].is_object()) {
      const JsonCursor parameters((*json)["parameters"]);
      const auto batch = parameters.int_or("batch_size", 0, 0, kMaxFleetBatch);
      const auto queue_us = parameters.number_or("queue_us", -1, 0, 1e12);
      note_answer(c.request, batch.ok() ? *batch : 0, queue_us.ok() ? *queue_us : -1);
    }
    settle(c.request, 200, "");
  }

  void wait(TimeNs until) override {
    // ppoll(2) waits to the nanosecond, also on kernels that have no epoll_pwait2(2).
    const TimeNs left = std::max<TimeNs>(0, until - live_now());
    const timespec timeout = {left / kNsPerSecond, left % kNsPerSecond};
    pollfd any = {epoll_.get(), POLLIN, 0};
    ::ppoll(&any, 1, &timeout, nullptr);
    epoll_event events[128];
    const int n = ::epoll_wait(epoll_.get(), events, 128, 0);
    for (int i = 0; i < n; ++i) {
      auto& c = *static_cast<Connection*>(events[i].data.ptr);
      const bool gone =
          std::any_of(graves_.begin(), graves_.end(), [&c](const auto& g) { return g.get() == &c; });
      if (gone) continue;
      if (c.busy) {
        advance(c);
      } else {
        close(c);  // the server closed an idle connection
      }
    }
    graves_.clear();
  }

  void give_up(TimeNs oldest) override {
    for (size_t i = connections_.size(); i-- > 0;) {
      auto& c = *connections_[i];
      if (!c.busy) continue;
      if (due(c.request) <= oldest)
        settle(c.request, kUnanswered, "no answer came in time");
      else if (servers_.size() > 1 && hangs(c))
        unanswered(c.request, c.server, kUnanswered, "no answer came in time");
      else
        continue;
      if (!stopped() && !c.io.received_any()) servers_[c.server].addresses.silent();
      close(c);
    }
    graves_.clear();
  }

  struct Server {
    const LoadTarget* target;
    ServerAddresses addresses;
  };
  std::vector<Server> servers_;
  size_t server_ = 0;  // that new requests go to
  FileHandle epoll_;
  std::vector<uint32_t> resends_;  // [request]
  // A request to be sent again.
  struct Again {
    TimeNs at = 0;
    size_t request = 0;
    std::string reason;  // why it has no answer yet
  };
  std::deque<Again> later_;  // by time
  std::vector<std::unique_ptr<Connection>> connections_, graves_;
  std::vector<Connection*> idle_;
};

}  // namespace

std::unique_ptr<LoadRun> http_load(const LoadTarget& target, std::span<const ModelUnderLoad> models,
                                   std::span<const Arrival> arrivals, const LoadOptions& options,
                                   const FindAddresses& find) {
  return std::make_unique<HttpLoad>(target, models, arrivals, options, find);
}

}  // namespace heddle
