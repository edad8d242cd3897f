// Clients of a served fleet of front_and_back(): every request has bytes and an id of its own, and one outcome.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "heddle/serve/live_plane.h"
#include "serve_process.h"

namespace heddle {

inline constexpr TimeNs kSlo = 1'000'000'000;

// Clients that send one request after the other, each with bytes and an id of its own.
class Clients {
 public:
  Clients(int port, int count) {
    for (int c = 0; c < count; ++c) threads_.emplace_back([this, port, c] { run(port, c); });
  }
  ~Clients() { stop(); }
  void stop() {
    quit_ = true;
    for (auto& t : threads_)
      if (t.joinable()) t.join();
  }

  std::atomic<int> sent{0}, answered{0}, failed{0};
  std::atomic<int> unanswered{0}, wrong{0}, doubled{0}, too_long{0};

 private:
  void run(int port, int c) {
    RawClient client(port);
    for (int i = 0; !quit_; ++i) {
      const auto id = std::to_string(c) + "-" + std::to_string(i);
      std::vector<std::byte> payload(static_cast<size_t>(1 + (c * 131 + i * 17) % 400));
      Json data = Json::array();
      for (size_t b = 0; b < payload.size(); ++b) {
        payload[b] = static_cast<std::byte>((b * 7 + static_cast<size_t>(c * 31 + i)) & 0xff);
        data.push_back(static_cast<int>(payload[b]));
      }
      const Json request = {
          {"id", id},
          {"inputs",
           {{{"name", "payload"}, {"shape", {payload.size()}}, {"datatype", "UINT8"}, {"data", data}}}}};
      ++sent;
      const auto begun = live_now();
      const auto answer = client.ask("POST", "/v2/models/net/infer", request.dump());
      if (live_now() - begun > kSlo + kNsPerSecond) ++too_long;
      if (answer.status == 0) {
        ++unanswered;
        return;
      }
      const auto json = parse_json(answer.body);
      if (answer.status == 200 && json.ok()) {
        ++answered;
        uint64_t digest = 0;
        for (const auto& out : (*json)["outputs"])
          if (out["name"] == "digest") digest = out["data"][0];
        if ((*json)["id"] != id || digest != payload_digest(payload.data(), payload.size())) ++wrong;
      } else {
        ++failed;
        if (!json.ok() || !json->contains("error")) ++wrong;
      }
    }
    // A second answer to any request would stand in the connection now.
    client.finish_sending();
    if (!client.closed()) ++doubled;
  }

  std::atomic<bool> quit_{false};
  std::vector<std::thread> threads_;
};

inline int64_t requests_of(const Json& status) {
  int64_t all = 0;
  for (const char* outcome : {"in_time", "late", "dropped", "failed", "withdrawn"})
    all += status["models"][0]["requests"][outcome].get<int64_t>();
  return all;
}

inline void expect_all_accounted_for(Clients& clients, const ServedFleet& served) {
  clients.stop();
  EXPECT_GT(clients.answered, 0);
  EXPECT_EQ(clients.sent, clients.answered + clients.failed);
  EXPECT_EQ(clients.unanswered, 0);
  EXPECT_EQ(clients.wrong, 0);
  EXPECT_EQ(clients.doubled, 0);
  EXPECT_EQ(clients.too_long, 0);
  const auto status = served.status();
  EXPECT_EQ(requests_of(status), clients.sent);
  EXPECT_EQ(status["models"][0]["in_plane"], 0);
}

inline void let_run(const Clients& clients, int answers) {
  const int until = clients.answered + answers;
  EXPECT_TRUE(eventually([&] { return clients.answered >= until; }));
}

}  // namespace heddle
