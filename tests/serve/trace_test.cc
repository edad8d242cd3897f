// Traces of requests: what a collector gets, whose trace it is, and that no request waits for it.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <set>

#include "collector.h"
#include "fleet_clients.h"
#include "heddle/serve/trace_context.h"
#include "heddle/serve/tracer.h"
#include "open_inference.grpc.pb.h"
#include "tracing/otlp_json.h"

namespace heddle {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

constexpr char kParent[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
constexpr char kTrace[] = "4bf92f3577b34da6a3ce929d0e0e4736";
constexpr char kInfer[] = "/v2/models/net/infer";
constexpr char kBody[] =
    R"({"id": "mine", "inputs": [{"name": "payload", "shape": [0], "datatype": "UINT8", "data": []}]})";

TEST(TraceContext, ReadsWhatW3cSays) {
  const auto context = parse_traceparent(kParent);
  ASSERT_TRUE(context);
  EXPECT_EQ(hex_text(context->trace_high) + hex_text(context->trace_low), kTrace);
  EXPECT_EQ(hex_text(context->span), "00f067aa0ba902b7");
  EXPECT_TRUE(context->sampled);
  EXPECT_FALSE(parse_traceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-02")->sampled);
  // Later versions may have more behind a dash.
  EXPECT_TRUE(parse_traceparent("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what-the-future"));
  EXPECT_TRUE(parse_traceparent("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"));
}

TEST(TraceContext, RefusesWhatIsMalformed) {
  const std::string whole = kParent;
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(parse_traceparent(whole.substr(0, size))) << size;
  for (const char* text :
       {"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-",   // longer, in version 00
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",  //
        "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01x",   // longer without a dash
        "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",    // no version
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",    // upper case
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",    // no trace
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",    // no span
        "00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01",    //
        "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",    //
        "0x-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",    //
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0g",    //
        " 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",   //
        "-------------------------------------------------------"})
    EXPECT_FALSE(parse_traceparent(text)) << text;
}

TracerOptions options_for(const Collector& collector) {
  TracerOptions options;
  options.collector.port = collector.port();
  options.interval_s = .02;
  options.retry_s = .02;
  return options;
}

std::unique_ptr<Tracer> tracer_of(const TracerOptions& options) {
  auto made = Tracer::create(options);
  EXPECT_TRUE(made.ok());
  return std::move(*made);
}

TEST(Tracer, SamplesItsShareAndFollowsItsCallers) {
  const Collector collector;
  auto options = options_for(collector);
  options.sample = .25;
  options.max_waiting = 1;  // the traces themselves do not matter here
  const auto tracer = tracer_of(options);
  int sampled = 0;
  std::set<uint64_t> traces;
  for (int i = 0; i < 4000; ++i)
    if (const auto trace = tracer->begin("http", "", ""); trace) {
      ++sampled;
      traces.insert(trace->record.context.trace_high);
    }
  EXPECT_GT(sampled, 800);
  EXPECT_LT(sampled, 1200);
  EXPECT_EQ(traces.size(), static_cast<size_t>(sampled));
  EXPECT_TRUE(tracer->begin("http", kParent, ""));
  EXPECT_FALSE(tracer->begin("http", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00", ""));
}

TEST(Tracer, TriesAgainWhereThatMayHelp) {
  Collector collector;
  collector.status = 503;
  const auto tracer = tracer_of(options_for(collector));
  tracer->begin("http", "", "");
  EXPECT_TRUE(eventually([&] { return collector.exports == 2; }));
  collector.status = 200;
  EXPECT_TRUE(eventually([&] { return tracer->counters().exported == 1; }));
  EXPECT_EQ(tracer->counters().failed, 0U);
  EXPECT_EQ(collector.spans().size(), 1U);
  collector.status = 400;
  const int before = collector.exports;
  tracer->begin("http", "", "");
  EXPECT_TRUE(eventually([&] { return tracer->counters().failed == 1; }));
  EXPECT_EQ(collector.exports, before + 1);
}

TEST(Tracer, CountsWhatACollectorRefuses) {
  Collector collector;
  collector.answer = R"({"partialSuccess": {"rejectedSpans": "1", "errorMessage": "too old"}})";
  const auto tracer = tracer_of(options_for(collector));
  tracer->begin("http", "", "");
  EXPECT_TRUE(eventually([&] { return tracer->counters().failed == 1; }));
  EXPECT_EQ(tracer->counters().exported, 0U);
}

TEST(Tracer, DropsRatherThanWaits) {
  Collector collector;
  collector.status = 0;
  auto options = options_for(collector);
  options.max_waiting = 8;
  options.most_at_once = 4;
  options.timeout_s = .3;
  const auto tracer = tracer_of(options);
  for (int i = 0; i < 1000; ++i) tracer->begin("http", "", "");
  const auto counters = tracer->counters();
  EXPECT_GE(counters.dropped, 1000U - 8 - 2 * 4);
  EXPECT_EQ(counters.exported, 0U);
}

// A traced request may outlive its tracer.
TEST(Tracer, ARequestThatOutlivesItIsDropped) {
  const Collector collector;
  auto tracer = tracer_of(options_for(collector));
  auto trace = tracer->begin("http", "", "");
  tracer.reset();
  trace.reset();
  EXPECT_TRUE(collector.spans().empty());
}

// Of three rows two ran together; the third one was alone, after its first device was lost.
TEST(OtlpBody, RowsThatWentTogetherAreOneSpan) {
  RequestTrace::Record record;
  record.context = {1, 2, 0, true};
  record.span = 3;
  record.began_wall_ns = 1'000'000;
  record.began = 100;
  record.ended = 900;
  record.model = "a \"model\"\n";
  PlaneStep together;
  together.work = 7;
  together.began = 200;
  together.ended = 300;
  together.batch = 2;
  PlaneStep alone = together, lost = together;
  alone.work = 9;
  alone.began = 500;
  alone.ended = 600;
  lost.work = 8;
  lost.lost = true;
  record.rows = {{100, 200, 300, Outcome::kInTime, {together}},
                 {100, 200, 300, Outcome::kInTime, {together}},
                 {100, 200, 600, Outcome::kLate, {lost, alone}}};
  Random ids(1);
  const auto json = parse_json(otlp_body(otlp_resource("s", "i"), std::vector{record, record}, ids));
  ASSERT_TRUE(json.ok()) << json.error().to_string();
  const auto& spans = (*json)["resourceSpans"][0]["scopeSpans"][0]["spans"];
  ASSERT_EQ(spans.size(), 10U);
  EXPECT_EQ(spans[0]["name"], "infer a \"model\"\n");
  EXPECT_EQ(spans[0]["traceId"], "00000000000000010000000000000002");
  EXPECT_EQ(spans[0]["startTimeUnixNano"], "1000000");
  EXPECT_EQ(spans[0]["endTimeUnixNano"], "1000800");
  EXPECT_EQ(attribute(spans[0], "heddle.outcome"), "late");
  EXPECT_EQ(spans[1]["name"], "queue");
  EXPECT_EQ(attribute(spans[1], "heddle.rows"), "3");
  EXPECT_EQ(attribute(spans[2], "heddle.rows"), "2");
  EXPECT_FALSE(spans[2].contains("status"));
  EXPECT_EQ(spans[3]["status"]["code"], 2);
  EXPECT_EQ(attribute(spans[4], "heddle.rows"), "1");
}

// The program with two workers, each request traced.
class TracedFleet : public testing::Test {
 protected:
  std::unique_ptr<ServedFleet> served(const std::vector<std::string>& more, int64_t count = 1) {
    std::vector<std::string> flags = {"--workers", "2", "--lease", "0.5"};
    flags.insert(flags.end(), more.begin(), more.end());
    auto out = std::make_unique<ServedFleet>(front_and_back(count), flags);
    EXPECT_TRUE(out->serves());
    return out;
  }
  static RawClient::Answer ask(const ServedFleet& of, const std::string& headers, const char* body = kBody,
                               const char* path = kInfer) {
    return RawClient(of.port()).ask("POST", path, body, headers);
  }
  std::string metrics(const ServedFleet& of) const {
    return RawClient(of.port()).ask("GET", "/metrics").body;
  }

  Collector collector_;
};

TEST_F(TracedFleet, ARequestIsFollowedThroughQueuePartitionsAndLink) {
  const auto server = served({"--otlp", collector_.url()});
  const auto answer =
      ask(*server, std::string("traceparent: ") + kParent + "\r\ntracestate: rojo=1,congo=2\r\n");
  ASSERT_EQ(answer.status, 200) << answer.body;
  ASSERT_TRUE(eventually([&] { return !collector_.named("infer net").empty(); }));
  EXPECT_EQ(collector_.path(), "/v1/traces");
  EXPECT_EQ(collector_.header("content-type"), "application/json");
  EXPECT_EQ(attribute(collector_.resource(), "service.name"), "heddle");
  EXPECT_THAT(attribute(collector_.resource(), "process.pid").get<std::string>(), MatchesRegex("[0-9]+"));

  const auto request = collector_.named("infer net").front();
  EXPECT_EQ(request["traceId"], kTrace);
  EXPECT_EQ(request["parentSpanId"], "00f067aa0ba902b7");
  EXPECT_EQ(request["traceState"], "rojo=1,congo=2");
  EXPECT_EQ(request["kind"], 2);
  EXPECT_FALSE(request.contains("status"));
  EXPECT_EQ(attribute(request, "heddle.outcome"), "in_time");
  EXPECT_EQ(attribute(request, "heddle.request_id"), "mine");
  EXPECT_EQ(attribute(request, "network.protocol.name"), "http");
  EXPECT_EQ(attribute(request, "heddle.rows"), "1");

  const auto queue = collector_.named("queue"), partitions = collector_.named("partition"),
             links = collector_.named("link");
  ASSERT_EQ(queue.size(), 1U);
  ASSERT_EQ(partitions.size(), 2U);
  ASSERT_EQ(links.size(), 1U);
  EXPECT_EQ(collector_.spans().size(), 5U);
  std::set<std::string> ids;
  const auto at = [](const Json& span, const char* which) {
    return std::stoll(span[which].get<std::string>());
  };
  for (const auto& span : collector_.spans()) {
    EXPECT_EQ(span["traceId"], kTrace);
    EXPECT_THAT(span["spanId"].get<std::string>(), MatchesRegex("[0-9a-f]+"));
    EXPECT_TRUE(ids.insert(span["spanId"]).second);
    if (span["name"] != "infer net") {
      EXPECT_EQ(span["parentSpanId"], request["spanId"]);
      EXPECT_EQ(span["kind"], 1);
    }
    EXPECT_LE(at(request, "startTimeUnixNano"), at(span, "startTimeUnixNano"));
    EXPECT_LE(at(span, "startTimeUnixNano"), at(span, "endTimeUnixNano"));
    EXPECT_LE(at(span, "endTimeUnixNano"), at(request, "endTimeUnixNano"));
  }
  EXPECT_LT(std::abs(at(request, "startTimeUnixNano") - wall_ns()), 60 * kNsPerSecond);
  // One after the other: the queue, the first part, the link, the second part.
  EXPECT_LE(at(queue[0], "endTimeUnixNano"), at(partitions[0], "startTimeUnixNano"));
  EXPECT_LE(at(partitions[0], "endTimeUnixNano"), at(links[0], "startTimeUnixNano"));
  EXPECT_LE(at(links[0], "endTimeUnixNano"), at(partitions[1], "startTimeUnixNano"));
  EXPECT_EQ(attribute(partitions[0], "heddle.device_class"), "front");
  EXPECT_EQ(attribute(partitions[1], "heddle.device_class"), "back");
  EXPECT_THAT(attribute(partitions[0], "heddle.worker").get<std::string>(), HasSubstr("worker-"));
  EXPECT_EQ(attribute(links[0], "heddle.worker"), attribute(partitions[1], "heddle.worker"));
  EXPECT_EQ(attribute(links[0], "heddle.source_worker"), attribute(partitions[0], "heddle.worker"));
  EXPECT_EQ(attribute(partitions[0], "heddle.planned_us"), 20'000.0);
  EXPECT_GE(attribute(partitions[0], "heddle.measured_us").get<double>(), 20'000.0);
  EXPECT_THAT(metrics(*server), HasSubstr("heddle_traces_total{state=\"exported\"} 1\n"));
}

TEST_F(TracedFleet, OfAMalformedParentOrTwoATraceBegins) {
  const auto server = served({"--otlp", collector_.url()});
  const std::vector<std::string> headers = {
      "traceparent: 00-zzz\r\n",
      "traceparent: \r\n",
      "traceparent: ff-" + std::string(kParent).substr(3) + "\r\n",
      std::string("traceparent: ") + kParent + "\r\ntraceparent: " + kParent + "\r\n",
      "traceparent: " + std::string(10'000, '0') + "\r\n",
      "tracestate: rojo=1\r\n"};
  for (const auto& header : headers) EXPECT_EQ(ask(*server, header).status, 200) << header;
  ASSERT_TRUE(eventually([&] { return collector_.named("infer net").size() == headers.size(); }));
  std::set<std::string> traces;
  for (const auto& span : collector_.named("infer net")) {
    EXPECT_FALSE(span.contains("parentSpanId"));
    EXPECT_FALSE(span.contains("traceState"));
    EXPECT_NE(span["traceId"], kTrace);
    traces.insert(span["traceId"]);
  }
  EXPECT_EQ(traces.size(), headers.size());
}

TEST_F(TracedFleet, WhatItsCallerDoesNotSampleIsNot) {
  const auto server = served({"--otlp", collector_.url()});
  EXPECT_EQ(ask(*server, "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00\r\n").status,
            200);
  EXPECT_EQ(ask(*server, "").status, 200);
  ASSERT_TRUE(eventually([&] { return !collector_.named("infer net").empty(); }));
  for (const auto& span : collector_.spans()) EXPECT_NE(span["traceId"], kTrace);
}

TEST_F(TracedFleet, RefusedRequestsHaveTheirError) {
  const auto server = served({"--otlp", collector_.url()});
  EXPECT_EQ(ask(*server, "", R"({"inputs": 3})").status, 400);
  EXPECT_EQ(ask(*server, "", kBody, "/v2/models/none/infer").status, 404);
  EXPECT_EQ(ask(*server, "", R"({"parameters": {"timeout": 1000}, "inputs": [{"name": "payload", "shape": [0],
                               "datatype": "UINT8", "data": []}]})")
                .status,
            504);
  ASSERT_TRUE(eventually([&] { return collector_.spans().size() >= 4; }));
  const auto error_of = [&](const std::string& name) {
    const auto spans = collector_.named(name);
    if (spans.empty() || !spans[0].contains("status")) return std::string();
    EXPECT_EQ(spans[0]["status"]["code"], 2);
    return spans[0]["status"]["message"].get<std::string>();
  };
  EXPECT_THAT(error_of("infer"), HasSubstr("$.inputs"));
  EXPECT_THAT(error_of("infer none"), HasSubstr("no model is named 'none'"));
  EXPECT_THAT(error_of("infer net"), HasSubstr("the request was dropped"));
  EXPECT_EQ(attribute(collector_.named("infer net")[0], "heddle.outcome"), "dropped");
  EXPECT_EQ(collector_.named("queue").size(), 1U);
}

TEST_F(TracedFleet, ByGrpcTheMetadataSayWhoseItIs) {
  const auto server = served({"--otlp", collector_.url(), "--otlp-sample", "0"});
  const auto stub = inference::GRPCInferenceService::NewStub(grpc::CreateChannel(
      "127.0.0.1:" + std::to_string(server->grpc_port()), grpc::InsecureChannelCredentials()));
  inference::ModelInferRequest request;
  request.set_model_name("net");
  auto& input = *request.add_inputs();
  input.set_name("payload");
  input.set_datatype("UINT8");
  input.add_shape(0);
  request.add_raw_input_contents("");
  for (const bool traced : {false, true}) {
    grpc::ClientContext context;
    if (traced) context.AddMetadata("traceparent", kParent);
    inference::ModelInferResponse response;
    const auto status = stub->ModelInfer(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
  }
  ASSERT_TRUE(eventually([&] { return !collector_.named("infer net").empty(); }));
  ASSERT_EQ(collector_.named("infer net").size(), 1U);
  const auto span = collector_.named("infer net")[0];
  EXPECT_EQ(span["traceId"], kTrace);
  EXPECT_EQ(attribute(span, "network.protocol.name"), "grpc");
}

TEST_F(TracedFleet, ALostDeviceShowsInItsRequests) {
  const auto server = served({"--otlp", collector_.url()}, 2);
  Clients clients(server->port(), 4);
  let_run(clients, 10);
  ::kill(server->worker("worker-0")["pid"].get<pid_t>(), SIGKILL);
  EXPECT_TRUE(eventually([&] {
    for (const auto& span : collector_.spans())
      if (span["name"] != "infer net" && span.contains("status")) return true;
    return false;
  }));
  clients.stop();
  EXPECT_EQ(clients.wrong, 0);
}

TEST_F(TracedFleet, ACollectorThatHangsHoldsNoRequest) {
  collector_.status = 0;
  const auto server = served({"--otlp", collector_.url()});
  Clients clients(server->port(), 4);
  let_run(clients, 40);
  clients.stop();
  EXPECT_EQ(clients.failed, 0);
  EXPECT_EQ(clients.too_long, 0);
  EXPECT_THAT(metrics(*server), HasSubstr("heddle_traces_total{state=\"exported\"} 0\n"));
}

TEST_F(TracedFleet, VariablesOfOpenTelemetryStandForTheFlags) {
  ::setenv("OTEL_EXPORTER_OTLP_ENDPOINT", (collector_.url() + "/prefix/").c_str(), 1);
  ::setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20b,other=2", 1);
  ::setenv("OTEL_SERVICE_NAME", "fleet-of-tests", 1);
  const auto server = served({});
  for (const char* name : {"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_HEADERS", "OTEL_SERVICE_NAME"})
    ::unsetenv(name);
  EXPECT_EQ(ask(*server, "").status, 200);
  ASSERT_TRUE(eventually([&] { return !collector_.named("infer net").empty(); }));
  EXPECT_EQ(collector_.path(), "/prefix/v1/traces");
  EXPECT_EQ(collector_.header("x-key"), "a b");
  EXPECT_EQ(attribute(collector_.resource(), "service.name"), "fleet-of-tests");
}

TEST_F(TracedFleet, OffByDefault) {
  const auto server = served({});
  EXPECT_EQ(ask(*server, std::string("traceparent: ") + kParent + "\r\n").status, 200);
  EXPECT_THAT(metrics(*server), Not(HasSubstr("heddle_traces_total")));
}

}  // namespace
}  // namespace heddle
