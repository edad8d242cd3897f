#include "heddle/graph/types.h"

#include <gtest/gtest.h>

namespace heddle {
namespace {

TEST(DTypes, NamesReadBackAndAreDistinct) {
  for (int i = 0; i <= static_cast<int>(DType::kString); ++i) {
    const auto type = static_cast<DType>(i);
    EXPECT_EQ(dtype_from_name(dtype_name(type)), type) << dtype_name(type);
  }
  EXPECT_FALSE(dtype_from_name("float"));
  EXPECT_FALSE(dtype_from_name(""));
}

TEST(TensorBytes, RoundUpToAByte) {
  EXPECT_EQ(tensor_bytes(DType::kF32, {1, 3, 224, 224}), 602112);
  EXPECT_EQ(tensor_bytes(DType::kF32, {}), 4);
  EXPECT_EQ(tensor_bytes(DType::kU1, {9}), 2);
  EXPECT_EQ(tensor_bytes(DType::kI4, {3}), 2);
  EXPECT_EQ(tensor_bytes(DType::kUndefined, {8}), 0);
}

TEST(TensorBytes, AreNoneForNegativeDimensionsAndOverflow) {
  EXPECT_FALSE(tensor_bytes(DType::kF32, {-1}));
  EXPECT_FALSE(tensor_bytes(DType::kF32, {0, -1}));
  EXPECT_FALSE(tensor_bytes(DType::kU8, {INT64_MAX, 2}));
  EXPECT_FALSE(tensor_bytes(DType::kF32, {INT64_MAX / 2}));
}

TEST(TensorBytes, AreZeroForAnEmptyTensorHoweverLargeTheRest) {
  EXPECT_EQ(tensor_bytes(DType::kF32, {INT64_MAX, INT64_MAX, 0}), 0);
}

TEST(ShapeText, ReadsLikeAShape) {
  EXPECT_EQ(shape_text({1, 3, 224}), "1x3x224");
  EXPECT_EQ(shape_text({}), "scalar");
}

}  // namespace
}  // namespace heddle
