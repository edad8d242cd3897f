#include "heddle/graph/batch.h"

#include <gtest/gtest.h>

#include "heddle/graph/zoo.h"

namespace heddle {
namespace {

// A network of the zoo can be built at a batch, which is what scaling must give: parameters are read once, all else for
// each request.
class BatchOfZoo : public testing::TestWithParam<const char*> {};

TEST_P(BatchOfZoo, IsTheNetworkBuiltAtThatBatch) {
  const auto one = build_zoo_graph(GetParam());
  const auto built = build_zoo_graph(GetParam(), {{"batch", "3"}});
  ASSERT_TRUE(one.ok() && built.ok());
  const auto scaled = with_batch(**one, 3);
  ASSERT_TRUE(scaled.ok()) << scaled.error().to_string();
  ASSERT_EQ((*scaled)->num_ops(), (*built)->num_ops());
  EXPECT_EQ((*scaled)->total_param_bytes(), (*one)->total_param_bytes());
  double flops = 0, bytes = 0;
  for (size_t i = 0; i < (*built)->num_ops(); ++i) {
    const Op &a = (*scaled)->op(OpId(i)), &b = (*built)->op(OpId(i));
    EXPECT_EQ(a.name, b.name);
    flops += std::abs(a.flops - b.flops);
    bytes += std::abs(static_cast<double>(a.bytes_accessed - b.bytes_accessed));
  }
  double all_bytes = 0;
  for (const Op& op : (*built)->ops()) all_bytes += static_cast<double>(op.bytes_accessed);
  // Values that are the same for all requests (masks, positions) are scaled, too.
  EXPECT_LE(flops, 1e-3 * (*built)->total_flops());
  EXPECT_LE(bytes, 1e-2 * all_bytes);
}

INSTANTIATE_TEST_SUITE_P(Networks, BatchOfZoo,
                         testing::Values("resnet-50", "inception-v3", "nasnet-a-mobile", "bert-base", "gpt2",
                                         "swin-t"));

TEST(Batch, OfOneIsTheGraph) {
  const auto one = build_zoo_graph("resnet-18");
  ASSERT_TRUE(one.ok());
  const auto same = with_batch(**one, 1);
  ASSERT_TRUE(same.ok());
  EXPECT_EQ((*same)->num_ops(), (*one)->num_ops());
  EXPECT_EQ((*same)->total_flops(), (*one)->total_flops());
}

TEST(Batch, OfNothingIsAnError) {
  const auto one = build_zoo_graph("resnet-18");
  ASSERT_TRUE(one.ok());
  EXPECT_FALSE(with_batch(**one, 0).ok());
}

}  // namespace
}  // namespace heddle
