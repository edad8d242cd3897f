// The page at "/" in a real browser: what a person sees there is what the server says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>

#include "heddle/fleet/fleet_planner.h"
#include "heddle/serve/fleet_server.h"
#include "heddle/serve/http_server.h"
#include "heddle/serve/rest_api.h"
#include "model_files.h"
#include "protocol/dashboard.h"
#include "serve_process.h"
#include "support/browser.h"

namespace heddle {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Answers of the service, changed by `change` if there is one; the page with a probe.
class PageServer {
 public:
  using Change = std::function<void(Json& status, int asked)>;

  explicit PageServer(InferService& service, std::string page, Change change = nullptr)
      : service_(service), page_(std::move(page)), change_(std::move(change)) {
    auto server = HttpServer::start({}, [this](const HttpHead& head, HttpBody body, HttpReply reply) {
      if (head.path == "/") return reply.send({.content_type = "text/html; charset=utf-8", .body = page_});
      if (head.path != "/v2/status" || !change_) return answer_rest(service_, head, body, reply);
      Json status = service_.status();
      change_(status, asked_++);
      reply.send(json_response(status));
    });
    EXPECT_TRUE(server.ok());
    if (server.ok()) server_ = std::move(*server);
  }
  ~PageServer() {
    if (server_) server_->stop(5);
  }
  PageServer(const PageServer&) = delete;
  PageServer& operator=(const PageServer&) = delete;

  int port() const { return server_->port(); }
  std::string address() const { return "http://127.0.0.1:" + std::to_string(port()) + "/"; }

 private:
  InferService& service_;
  std::string page_;
  Change change_;
  std::atomic<int> asked_ = 0;
  std::unique_ptr<HttpServer> server_;
};

class PageInBrowser : public testing::Test {
 protected:
  void SetUp() override {
    browser_ = find_browser();
    if (browser_.empty()) GTEST_SKIP() << "no chromium is installed here";
    auto fleet = front_and_back(3);
    fleet.name = "<i id=injected>fleet</i>";  // names come from files and must stay text
    const auto plan = plan_fleet(fleet, "auto", {});
    ASSERT_TRUE(plan.ok());
    auto generation = timed_generation(fleet, *plan, {});
    ASSERT_TRUE(generation.ok());
    service_.serve(std::move(*generation));
  }
  void TearDown() override { service_.stop(5); }

  InferService service_;
  std::string browser_;
};

TEST_F(PageInBrowser, ShowsWhatTheServerSays) {
  // As the server sends it, with its policy for scripts.
  const auto server = start_rest(service_);
  ASSERT_TRUE(server.ok());
  const auto answer =
      RawClient((*server)->port())
          .ask("POST", "/v2/models/net/infer",
               R"({"inputs": [{"name": "payload", "shape": [1], "datatype": "UINT8", "data": [1]}]})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  // Two and a half seconds of the page's own time: it asks each second.
  const auto page =
      page_in_browser(browser_, "http://127.0.0.1:" + std::to_string((*server)->port()) + "/", {}, 2500);
  (*server)->stop(5);
  if (page.empty()) GTEST_SKIP() << browser_ << " does not start here";
  EXPECT_THAT(page, HasSubstr(R"(class="muted">serving</span>)"));
  EXPECT_THAT(page, HasSubstr("&lt;i id=injected&gt;fleet&lt;/i&gt;"));
  EXPECT_THAT(page, HasSubstr("<td>net</td><td>1.00 s</td>"));
  EXPECT_THAT(page, HasSubstr("<td>1</td><td>100.0 %</td>")) << "answered, in time";
  EXPECT_THAT(page, HasSubstr("3 x back<div"));
  EXPECT_THAT(page, HasSubstr("blocks 0..0, batch 1"));
  EXPECT_THAT(page, HasSubstr("3 devices: 3 idle"));
  EXPECT_THAT(page.substr(0, page.find("<script>")), Not(HasSubstr("no answer")));
}

// The server's figures over time: ten answers a second, one in ten of them late.
void ten_a_second(Json& status, int asked) {
  const int n = 10 * (asked + 1);
  Json& model = status["models"][0];
  model["requests"]["in_time"] = n - asked - 1;
  model["requests"]["late"] = asked + 1;
  model["latency_ranges"] = {{20'000, n - asked - 1}, {1'500'000, asked + 1}};
  status["pools"][0]["use"] = .256;
  status["classes"][0]["devices"] = 5;
  status["classes"][0]["busy"] = 1;
  status["classes"][0]["lost"] = 1;
  status["drained"] = {{"back", 2}};
  status["workers"] = {{{"name", "<i id=injected>"},
                        {"state", "lost"},
                        {"reason", "gone"},
                        {"virtual_devices", 0},
                        {"runs", 1},
                        {"losses", 1}}};
}

TEST_F(PageInBrowser, DrawsCoursesAndDevicesOnEveryScreen) {
  PageServer server(service_, with_probe(std::string(dashboard_page()), 3300, R"js(
  seen.paths = [...document.querySelectorAll('#latency path')].filter(p => p.getAttribute('d').includes('L')).length;
  const latency = document.querySelector('#latency svg'), text = latency.querySelector('text');
  seen.scale = (latency.getBoundingClientRect().width / latency.viewBox.baseVal.width).toFixed(2);
  seen.axis = [...document.querySelectorAll('#latency svg text')].map(t => t.textContent).join('|');
  seen.caption = document.querySelector('#latency figcaption').textContent;
  seen.share = document.querySelector('#share figcaption').textContent;
  seen.squares = ['busy', 'lost', 'drained', 'unused'].map(s => document.querySelectorAll('.squares .' + s).length);
)js"),
                    ten_a_second);
  for (const auto window : kPageWindows) {
    const auto page = page_in_browser(browser_, server.address(), window, 4000);
    if (page.empty()) GTEST_SKIP() << browser_ << " does not start here";
    check_page(page, window);
    EXPECT_EQ(root_data(page, "paths"), "2") << "p50 and p99 have a course";
    EXPECT_EQ(root_data(page, "scale"), "1.00") << "texts keep their size";
    EXPECT_THAT(root_data(page, "axis"), AllOf(HasSubstr("1.00 s|"), HasSubstr("-20 s"), HasSubstr("now")));
    EXPECT_THAT(root_data(page, "caption"),
                AllOf(HasSubstr("p50 20.0 ms"), HasSubstr("p99 1.50 s"), HasSubstr("SLO 1.00 s")));
    EXPECT_THAT(root_data(page, "share"), HasSubstr("in time 90 %"));
    EXPECT_EQ(root_data(page, "squares"), "1,1,2,2") << "busy, lost, drained, not in the plan";
    EXPECT_THAT(page, HasSubstr("use 25.6 %"));
    EXPECT_THAT(page, HasSubstr("<td>&lt;i id=injected&gt;</td><td class=\"text\">lost: gone</td>"));
  }
}

}  // namespace
}  // namespace heddle
