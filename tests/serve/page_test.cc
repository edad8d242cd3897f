// The page at "/" in a real browser: what a person sees there is what the server says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "heddle/fleet/fleet_planner.h"
#include "heddle/serve/fleet_server.h"
#include "heddle/serve/http_server.h"
#include "heddle/serve/rest_api.h"
#include "model_files.h"
#include "serve_process.h"

namespace heddle {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string output_of(const std::string& command) {
  std::string text;
  FILE* const out = ::popen(command.c_str(), "r");
  if (out == nullptr) return text;
  std::array<char, 4096> buffer;
  for (size_t n; (n = std::fread(buffer.data(), 1, buffer.size(), out)) > 0;) text.append(buffer.data(), n);
  ::pclose(out);
  return text;
}

// Debian's and Ubuntu's names; "" where there is none.
std::string find_browser() {
  for (const std::string name : {"chromium", "chromium-browser", "google-chrome"})
    if (std::system(("command -v " + name + " > /dev/null 2>&1").c_str()) == 0) return name;
  return "";
}

TEST(Page, ShowsModelsPoolsAndClassesInABrowser) {
  const auto browser = find_browser();
  if (browser.empty()) GTEST_SKIP() << "no chromium is installed here";
  auto fleet = front_and_back(3);
  fleet.name = "<i id=injected>fleet</i>";  // names come from files and must stay text
  const auto plan = plan_fleet(fleet, "auto", {});
  ASSERT_TRUE(plan.ok());
  auto generation = timed_generation(fleet, *plan, {});
  ASSERT_TRUE(generation.ok());
  InferService service;
  service.serve(std::move(*generation));
  const auto server = HttpServer::start({}, [&service](const HttpHead& head, HttpBody body, HttpReply reply) {
    answer_rest(service, head, std::move(body), std::move(reply));
  });
  ASSERT_TRUE(server.ok());
  const auto answer =
      RawClient((*server)->port())
          .ask("POST", "/v2/models/net/infer",
               R"({"inputs": [{"name": "payload", "shape": [1], "datatype": "UINT8", "data": [1]}]})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const TestFolder profile;
  // Two and a half seconds of the page's own time: it asks each second.
  const auto page =
      output_of("timeout 100 " + browser +
                " --headless --no-sandbox --disable-gpu --virtual-time-budget=2500 --user-data-dir='" +
                profile.path("browser") +
                "' --dump-dom http://127.0.0.1:" + std::to_string((*server)->port()) + "/ 2>/dev/null");
  if (page.empty()) GTEST_SKIP() << browser << " does not start here";
  EXPECT_THAT(page, HasSubstr(R"(class="muted">serving</span>)"));
  EXPECT_THAT(page, HasSubstr("&lt;i id=injected&gt;fleet&lt;/i&gt;"));
  EXPECT_THAT(page, HasSubstr("<td>net</td><td>1.00 s</td>"));
  EXPECT_THAT(page, HasSubstr("<td>1</td><td>100.0 %</td>")) << "answered, in time";
  EXPECT_THAT(page, HasSubstr("<td>front</td><td>3</td><td>3</td>"));
  EXPECT_THAT(page, HasSubstr("3 x back<div"));
  EXPECT_THAT(page, HasSubstr("blocks 0..0, batch 1"));
  EXPECT_THAT(page.substr(0, page.find("<script>")), Not(HasSubstr("no answer")));
  (*server)->stop(5);
  service.stop(5);
}

}  // namespace
}  // namespace heddle
