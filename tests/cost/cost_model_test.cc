#include "heddle/cost/cost_model.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "heddle/base/hash.h"
#include "heddle/cluster/catalogue.h"
#include "heddle/cluster/cluster_yaml.h"
#include "heddle/cluster/variants.h"
#include "heddle/cost/profile_store.h"

namespace heddle {
namespace {

struct OpSpec {
  const char* type;
  double flops;
  int64_t bytes;
  std::vector<GivenTime> times = {};
  std::vector<OpId> members = {};
};

std::shared_ptr<const Graph> chain(const std::vector<OpSpec>& specs) {
  GraphBuilder b("chain");
  TensorId last = b.add_input("in", DType::kF32, {4});
  for (size_t i = 0; i < specs.size(); ++i) {
    Op op;
    op.name = "op" + std::to_string(i);
    op.type = specs[i].type;
    op.inputs = {last};
    op.flops = specs[i].flops;
    op.bytes_accessed = specs[i].bytes;
    op.given_times = specs[i].times;
    op.members = specs[i].members;
    Tensor out;
    out.name = "t" + std::to_string(i);
    out.shape = {4};
    last = b.outputs_of(b.add_op(op, {out}))[0];
  }
  b.add_output(last);
  auto g = b.build();
  EXPECT_TRUE(g.ok()) << g.error().to_string();
  return *g;
}

Device gpu(double flops = 1e12, double bandwidth = 1e11, double speed = 1) {
  Device d;
  d.name = "gpu";
  d.device_class = "G";
  d.peak_flops = flops;
  d.memory_bytes_per_s = bandwidth;
  d.op_overhead_us = 5;
  d.speed = speed;
  return d;
}

const std::vector<OpId> kFirst = {OpId(0)};
const std::vector<OpId> kBoth = {OpId(0), OpId(1)};

TEST(Given, TheClassesTimeIsTakenAsItIsAndTheGeneralOneIsDividedBySpeed) {
  const auto g = chain({{"X", 0, 0, {{"*", 10}, {"G", 7}}}, {"X", 0, 0, {{"*", 10}}}});
  const auto model = given_cost_model();
  EXPECT_EQ(model->segment(*g, kFirst, gpu(0, 0, 0.5), {})->us, 7);
  EXPECT_EQ(model->segment(*g, kBoth, gpu(0, 0, 0.5), {})->us, 7 + 20);
  EXPECT_EQ(model->segment(*g, kBoth, gpu(), {})->origin, Origin::kGiven);
  const auto half = model->segment(*g, kBoth, gpu(), {.share = 0.5});
  EXPECT_EQ(half->us, 34);
  EXPECT_EQ(half->origin, Origin::kScaled);
}

TEST(Given, OpsWithoutATimeForTheClassAreNotKnown) {
  const auto g = chain({{"X", 0, 0, {{"H", 7}}}});
  EXPECT_FALSE(given_cost_model()->segment(*g, kFirst, gpu(), {}).has_value());
}

// Convolution reaches 0.6 of the peak: 6e8 / (1e12 * 0.6) = 1000 us; memory 7e6 / (1e11 * 0.7) = 100 us.
TEST(Roofline, TakesTheLongerOfArithmeticAndTrafficAndAddsOneOverhead) {
  const auto g = chain({{"Convolution", 6e8, 7'000'000}, {"Add", 1, 75'000'000}});
  const auto model = roofline_cost_model();
  EXPECT_DOUBLE_EQ(model->segment(*g, kFirst, gpu(), {})->us, 1005);
  EXPECT_DOUBLE_EQ(model->segment(*g, kBoth, gpu(), {})->us, 1000 + 1000 + 5);
  EXPECT_DOUBLE_EQ(model->segment(*g, kFirst, gpu(1e12, 1e11, 0.5), {})->us, 2005);
  EXPECT_DOUBLE_EQ(model->segment(*g, kFirst, gpu(), {.share = 0.25})->us, 4005);
  EXPECT_EQ(model->segment(*g, kFirst, gpu(), {})->origin, Origin::kEstimated);
}

TEST(Roofline, AFusedOpIsAsEfficientAsItsHeaviestPart) {
  const auto g = chain({{"Relu+Convolution+Add", 6e8, 0}});
  EXPECT_DOUBLE_EQ(roofline_cost_model()->segment(*g, kFirst, gpu(), {})->us, 1005);
}

// 65 TFLOP/s of fp16, 130 TOP/s of int8; the V100 has no int8 rate, and hardware with a rate of its own keeps that.
TEST(Roofline, CountsQuantisedUnitsAtTheInt8RateOfTheCatalogue) {
  const auto g = chain({{"Convolution", 6.5e9, 1}, {"Convolution+int8", 6.5e9, 1}});
  const auto us = [&](Device device, OpId op) {
    device.op_overhead_us = 0;
    return roofline_cost_model()->segment(*g, {&op, 1}, device, {})->us;
  };
  const auto device = [](const char* name) {
    return as_variant(make_device(*find_in_catalogue(name), "d", HostId(0)), {"", Precision::kFp16});
  };
  EXPECT_DOUBLE_EQ(us(device("T4"), OpId(0)), 6.5e9 / (65e12 * 0.6) * 1e6);
  EXPECT_DOUBLE_EQ(us(device("T4"), OpId(1)), 6.5e9 / (130e12 * 0.6) * 1e6);
  EXPECT_EQ(us(device("V100"), OpId(1)), us(device("V100"), OpId(0)));
  Device own = device("T4");
  own.peak_flops = 50e12;
  EXPECT_EQ(us(own, OpId(1)), us(own, OpId(0)));
}

TEST(Roofline, SaysNothingOfDevicesWithoutPeakRates) {
  const auto g = chain({{"Add", 1, 1}});
  EXPECT_FALSE(roofline_cost_model()->segment(*g, kFirst, gpu(0, 1e9), {}).has_value());
  EXPECT_FALSE(roofline_cost_model()->segment(*g, kFirst, gpu(1e9, 0), {}).has_value());
}

TEST(FirstOf, AsksInOrder) {
  const auto g = chain({{"Add", 1, 1, {{"G", 3}}}, {"Add", 0, 0}});
  const auto model = first_of({given_cost_model(), roofline_cost_model()});
  EXPECT_EQ(model->segment(*g, kFirst, gpu(), {})->origin, Origin::kGiven);
  EXPECT_EQ(model->segment(*g, std::vector{OpId(1)}, gpu(), {})->origin, Origin::kEstimated);
  EXPECT_FALSE(first_of({})->segment(*g, kFirst, gpu(), {}).has_value());
}

// Measured 50 us on `from`; the roofline says 1005 there and 505 on a device of twice the arithmetic.
TEST(Scaled, MultipliesByTheRatioOfTheRooflines) {
  const auto g = chain({{"Convolution", 6e8, 0, {{"G", 50}}}});
  Device fast = gpu(2e12);
  fast.device_class = "F";
  const auto cost = scaled_cost_model(given_cost_model(), gpu())->segment(*g, kFirst, fast, {});
  ASSERT_TRUE(cost.has_value());
  EXPECT_DOUBLE_EQ(cost->us, 50 * 505.0 / 1005.0);
  EXPECT_EQ(cost->origin, Origin::kScaled);
  EXPECT_FALSE(scaled_cost_model(given_cost_model(), fast)->segment(*g, kFirst, gpu(), {}).has_value());
}

class Measured : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "heddle_cost_XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    store_ = ProfileStore::open(folder_ + "/p.sqlite", "m").value();
    device_ = gpu();
    device_.target = "t";
  }
  void TearDown() override {
    store_.reset();
    std::filesystem::remove_all(folder_);
  }
  static uint64_t signature(std::span<const OpId> ops) {
    Hasher h;
    for (OpId op : ops) h.number(static_cast<uint64_t>(op.value));
    return h.value();
  }
  void put(const std::vector<OpId>& ops, int batch, double us, double share = 1, double spread = 0.01) {
    ProfileRecord r;
    r.key = {.signature = signature(ops), .target = "t", .batch = batch, .share = share};
    r.median_us = us;
    r.rel_spread = spread;
    r.runs = 5;
    ASSERT_TRUE(store_->put(r).ok());
  }
  std::optional<Cost> cost(const Graph& g, const std::vector<OpId>& ops, CostContext context) const {
    return measured_cost_model(store_, signature)->segment(g, ops, device_, context);
  }
  std::string folder_;
  std::shared_ptr<ProfileStore> store_;
  Device device_;
};

TEST_F(Measured, IsExactAtMeasuredBatchesLinearBetweenAndSilentBeyond) {
  const auto g = chain({{"A", 0, 0}, {"B", 0, 0}});
  put(kFirst, 2, 10, 1, 0.02);
  put(kFirst, 6, 30, 1, 0.05);
  put(kFirst, 8, 34);
  EXPECT_EQ(cost(*g, kFirst, {.batch = 6})->us, 30);
  EXPECT_EQ(cost(*g, kFirst, {.batch = 6})->origin, Origin::kMeasured);
  EXPECT_EQ(cost(*g, kFirst, {.batch = 3})->us, 15);
  EXPECT_EQ(cost(*g, kFirst, {.batch = 5})->us, 25);
  EXPECT_EQ(cost(*g, kFirst, {.batch = 5})->origin, Origin::kInterpolated);
  EXPECT_EQ(cost(*g, kFirst, {.batch = 5})->rel_spread, 0.05);
  EXPECT_EQ(cost(*g, kFirst, {.batch = 7})->us, 32);
  EXPECT_FALSE(cost(*g, kFirst, {.batch = 1}).has_value());
  EXPECT_FALSE(cost(*g, kFirst, {.batch = 9}).has_value());
  EXPECT_FALSE(cost(*g, kBoth, {.batch = 6}).has_value());
}

// Affine in 1/share: 10 + 10/share is met exactly at share 1/2.
TEST_F(Measured, IsLinearInTheReciprocalOfTheShare) {
  const auto g = chain({{"A", 0, 0}});
  put(kFirst, 1, 20, 1);
  put(kFirst, 1, 50, 0.25);
  EXPECT_DOUBLE_EQ(cost(*g, kFirst, {.share = 0.5})->us, 30);
  EXPECT_EQ(cost(*g, kFirst, {.share = 0.5})->origin, Origin::kInterpolated);
  EXPECT_FALSE(cost(*g, kFirst, {.share = 0.2}).has_value());
}

TEST_F(Measured, CoarsenedOpsStandForTheirMembers) {
  const auto g = chain({{"A+B", 0, 0, {}, {OpId(3), OpId(7)}}, {"C", 0, 0, {}, {OpId(5)}}});
  put({OpId(3), OpId(5), OpId(7)}, 1, 42);
  EXPECT_EQ(cost(*g, kBoth, {})->us, 42);
}

TEST_F(Measured, DevicesWithoutATargetAreNotMeasured) {
  const auto g = chain({{"A", 0, 0}});
  put(kFirst, 1, 20);
  device_.target.clear();
  EXPECT_FALSE(cost(*g, kFirst, {}).has_value());
}

TEST(BuildCostTable, FillsEveryOpOnEveryDeviceWithItsOrigin) {
  const auto g = chain({{"Convolution", 6e8, 1, {{"V100-1500MHz", 3}}}, {"Add", 1, 100}});
  const auto c = load_cluster("preset:v100-hetero").value();
  const auto table = build_cost_table(*g, *c, *first_of({given_cost_model(), roofline_cost_model()}), {});
  ASSERT_TRUE(table.ok()) << table.error().to_string();
  EXPECT_EQ(table->us(OpId(0), DeviceId(0)), 3);
  EXPECT_EQ(table->us(OpId(0), DeviceId(3)), 3);
  EXPECT_EQ(table->at(OpId(0), DeviceId(0)).origin, Origin::kGiven);
  EXPECT_EQ(table->at(OpId(0), DeviceId(1)).origin, Origin::kEstimated);
  EXPECT_EQ(table->us(OpId(0), DeviceId(1)), table->us(OpId(0), DeviceId(2)));
  EXPECT_GT(table->us(OpId(0), DeviceId(1)), 100);
}

TEST(BuildCostTable, AnOpThatOneDeviceKnowsIsImpossibleOnTheOthers) {
  const auto g = chain({{"A", 0, 0, {{"V100-135MHz", 3}}}});
  const auto c = load_cluster("preset:v100-hetero").value();
  const auto table = build_cost_table(*g, *c, *given_cost_model(), {});
  ASSERT_TRUE(table.ok());
  EXPECT_EQ(table->us(OpId(0), DeviceId(0)), kImpossible);
  EXPECT_EQ(table->us(OpId(0), DeviceId(1)), 3);
}

TEST(BuildCostTable, NamesTheOpThatNoDeviceCanRun) {
  const auto g = chain({{"A", 0, 0, {{"*", 1}}}, {"Odd", 0, 0}});
  const auto c = load_cluster("preset:v100-hetero").value();
  const auto table = build_cost_table(*g, *c, *given_cost_model(), {});
  ASSERT_FALSE(table.ok());
  EXPECT_EQ(table.error().to_string(),
            "no time is known for the op 'op1' (Odd) on any device of 'v100-hetero' (classes 'V100-1500MHz', "
            "'V100-135MHz'); "
            "profile it there, give the devices peak rates, or give the op a time for one of the classes");
  EXPECT_FALSE(build_cost_table(*g, *c, *given_cost_model(), {.batch = 0}).ok());
  EXPECT_FALSE(build_cost_table(*g, *c, *given_cost_model(), {.share = 2}).ok());
}

}  // namespace
}  // namespace heddle
