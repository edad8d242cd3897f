#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "heddle/base/quantiles.h"
#include "heddle/base/random.h"
#include "heddle/runtime/run.h"
#include "run/sampling.h"
#include "run/tensor_files.h"

namespace heddle {
namespace {

TensorValue floats(const Shape& shape, std::vector<float> values) {
  TensorValue t = make_tensor(DType::kF32, shape).value();
  std::memcpy(t.data.get(), values.data(), values.size() * sizeof(float));
  return t;
}

std::string npy(const std::string& header, const std::string& data) {
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0' + header + data;
}

// A file as NumPy writes it.
std::string npy_file(const std::string& code, const TensorView& tensor) {
  std::string shape;
  for (const int64_t d : tensor.shape) shape += std::to_string(d) + ", ";
  if (tensor.shape.size() > 1) shape.resize(shape.size() - 2);  // Python writes "(1, 3)", but "(3,)"
  if (tensor.shape.size() == 1) shape.pop_back();
  std::string header = "{'descr': '" + code + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  header.append((64 - (10 + header.size() + 1) % 64) % 64, ' ');
  return npy(header + "\n",
             std::string(reinterpret_cast<const char*>(tensor.data), static_cast<size_t>(tensor.bytes)));
}

TEST(Npy, FilesOfEveryDtypeAndRankAreRead) {
  for (const auto& [code, dtype] : std::vector<std::pair<std::string, DType>>{{"|b1", DType::kBool},
                                                                              {"|i1", DType::kI8},
                                                                              {"|u1", DType::kU8},
                                                                              {"<i2", DType::kI16},
                                                                              {"<u2", DType::kU16},
                                                                              {"<i4", DType::kI32},
                                                                              {"<u4", DType::kU32},
                                                                              {"<i8", DType::kI64},
                                                                              {"<u8", DType::kU64},
                                                                              {"<f2", DType::kF16},
                                                                              {"<f4", DType::kF32},
                                                                              {"<f8", DType::kF64}}) {
    for (const Shape& shape : {Shape{}, Shape{3}, Shape{2, 3}, Shape{0, 4}, Shape{1, 2, 3, 4}}) {
      TensorValue t = make_tensor(dtype, shape).value();
      for (int64_t i = 0; i < t.bytes; ++i) t.data[i] = static_cast<std::byte>(i * 7 + 1);
      const auto back = parse_npy(npy_file(code, t.view()));
      ASSERT_TRUE(back.ok()) << back.error().to_string();
      EXPECT_EQ(back->dtype, dtype);
      EXPECT_EQ(back->shape, shape);
      EXPECT_EQ(std::memcmp(back->data.get(), t.data.get(), static_cast<size_t>(t.bytes)), 0);
      // What is written is a file as NumPy writes it, but for the comma behind the last dimension.
      const auto written = npy_content(t.view());
      ASSERT_TRUE(written.ok()) << written.error().to_string();
      EXPECT_EQ(written->substr(10, 12 + code.size()), "{'descr': '" + code + "'");
      const size_t header = written->find('\n') + 1;
      EXPECT_EQ(header % 64, 0U);
      EXPECT_EQ(parse_npy(*written)->shape, shape);
      EXPECT_EQ(written->substr(header),
                npy_file(code, t.view()).substr(npy_file(code, t.view()).find('\n') + 1));
    }
  }
}

TEST(Npy, Bf16IsWrittenAsF32AndPackedTypesAreRefused) {
  TensorValue t = make_tensor(DType::kBF16, {2}).value();
  const uint16_t bits[] = {0x3F80, 0xC020};  // 1 and -2.5
  std::memcpy(t.data.get(), bits, sizeof bits);
  const auto back = parse_npy(npy_content(t.view()).value());
  ASSERT_TRUE(back.ok());
  ASSERT_EQ(back->dtype, DType::kF32);
  EXPECT_EQ(element_as_double(back->view(), 0), 1);
  EXPECT_EQ(element_as_double(back->view(), 1), -2.5);
  const auto refused = npy_content(make_tensor(DType::kI4, {2}).value().view());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::kUnsupported);
}

TEST(Npy, MalformedFilesAreRefusedWithTheReason) {
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n";
  ASSERT_TRUE(parse_npy(npy(good, std::string(8, '\0'))).ok());
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "magic bytes"},
      {"\x93NUMPY\x09" + std::string(20, '\0'), "version 9"},
      {npy(good, std::string(7, '\0')), "needs 8 bytes"},
      {npy(good, std::string(9, '\0')), "needs 8 bytes"},
      {npy("{'descr': '>f4', 'fortran_order': False, 'shape': (2,)}", std::string(8, '\0')), "little-endian"},
      {npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2,)}", std::string(8, '\0')), "Fortran"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}", std::string(8, '\0')), "from 0"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}", ""), "needs more"},
      {npy("{'descr': '<f4', 'fortran_order': False}", ""), "'shape'"},
      {npy("{'descr': '<f4', 'descr': '<f4'}", ""), "duplicate key"},
      {npy("{'nonsense': 3}", ""), "unknown key"},
      {npy("{'descr': '<f4'", ""), "column"},
      {npy(good + "x", ""), "column"},
  };
  for (const auto& [content, reason] : cases) {
    const auto result = parse_npy(content);
    ASSERT_FALSE(result.ok()) << reason;
    EXPECT_NE(result.error().to_string().find(reason), std::string::npos) << result.error().to_string();
  }
}

TEST(Npy, MutatedFilesNeverCrash) {
  const std::string good = npy_file("<f4", floats({2, 2}, {1, 2, 3, 4}).view());
  Random random(3);
  for (int i = 0; i < 20000; ++i) {
    std::string text = good;
    for (uint64_t k = random.below(4) + 1; k > 0; --k)
      text[random.below(text.size())] = static_cast<char>(random.below(256));
    if (random.chance(0.3)) text.resize(random.below(text.size()));
    static_cast<void>(parse_npy(text).ok());
  }
}

TEST(Image, OneToOnePixelsAreNormalisedPerChannel) {
  const std::string ppm = std::string("P6\n# drawn\n2 1\n255\n") + std::string("\xff\x00\x80\x00\xff\x40", 6);
  const auto t = parse_image_ppm(ppm, {1, 3, 1, 2});
  ASSERT_TRUE(t.ok()) << t.error().to_string();
  const auto* v = reinterpret_cast<const float*>(t->data.get());
  const std::vector<float> means = {0.485F, 0.456F, 0.406F}, deviations = {0.229F, 0.224F, 0.225F};
  const std::vector<float> pixels = {1, 0, 0, 1, 128 / 255.0F, 64 / 255.0F};
  for (size_t i = 0; i < pixels.size(); ++i)
    EXPECT_NEAR(v[i], (pixels[i] - means[i / 2]) / deviations[i / 2], 1e-5) << i;
}

TEST(Image, HalvingAveragesAndEveryBatchEntryIsTheSame) {
  const std::string ppm =
      std::string("P6 2 2 255\n") + std::string("\x00\x00\x00\xff\xff\xff\xff\xff\xff\x00\x00\x00", 12);
  const auto t = parse_image_ppm(ppm, {2, 3, 1, 1});
  ASSERT_TRUE(t.ok());
  const auto* v = reinterpret_cast<const float*>(t->data.get());
  EXPECT_NEAR(v[0], (0.5F - 0.485F) / 0.229F, 1e-5);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(v[i], v[i + 3]);
}

TEST(Image, MalformedPicturesAreRefusedWithTheReason) {
  for (const auto& [content, reason] :
       std::vector<std::pair<std::string, std::string>>{{"P5 1 1 255\n0", "P6"},
                                                        {"P6 1 1 65535\n000000", "8 bits"},
                                                        {"P6 2 2 255\n000", "ends before"},
                                                        {"P6 0 1 255\n", "pixels"},
                                                        {"P6 99999999999 1 255\n", "too large"},
                                                        {"P6 x", "expected a number"}}) {
    const auto result = parse_image_ppm(content, {1, 3, 2, 2});
    ASSERT_FALSE(result.ok());
    EXPECT_NE(result.error().to_string().find(reason), std::string::npos) << result.error().to_string();
  }
  EXPECT_FALSE(parse_image_ppm("P6 1 1 255\n000", {1, 1, 2, 2}).ok());
}

TEST(Tensors, ComparisonHonoursBothTolerancesAndNan) {
  const auto a = floats({3}, {1, 100, NAN});
  EXPECT_TRUE(compare_tensors(a.view(), floats({3}, {1, 100, NAN}).view(), 0, 0).equal);
  EXPECT_TRUE(compare_tensors(a.view(), floats({3}, {1.0009F, 100.09F, NAN}).view(), 1e-3, 0).equal);
  EXPECT_FALSE(compare_tensors(a.view(), floats({3}, {1.01F, 100, NAN}).view(), 1e-3, 0).equal);
  EXPECT_FALSE(compare_tensors(a.view(), floats({3}, {1, 100, 3}).view(), 1e-3, 1e-3).equal);
  EXPECT_FALSE(compare_tensors(a.view(), floats({1, 3}, {1, 100, NAN}).view(), 1, 1).equal);
  const auto infinite = floats({2}, {INFINITY, -INFINITY});
  EXPECT_TRUE(compare_tensors(infinite.view(), floats({2}, {INFINITY, -INFINITY}).view(), 1e-3, 1e-5).equal);
  EXPECT_FALSE(compare_tensors(floats({2}, {1, -INFINITY}).view(), infinite.view(), 1e-3, 1e-5).equal);
  EXPECT_FALSE(compare_tensors(floats({2}, {INFINITY, INFINITY}).view(), infinite.view(), 1e-3, 1e-5).equal);
  EXPECT_NEAR(compare_tensors(a.view(), floats({3}, {1, 101, NAN}).view(), 1e-3, 0).max_abs, 1, 1e-6);
}

TEST(Sampling, QuantilesInterpolateAndIgnoreLateOutliers) {
  std::vector<double> times(100, 10.0);
  for (size_t i = 40; i < 100; ++i) times[i] = 13.0 + static_cast<double>(i);
  EXPECT_DOUBLE_EQ(quantile_us(times, 0.05), 10);
  EXPECT_DOUBLE_EQ(median_us(std::vector<double>{4, 1, 3, 2}), 2.5);
  EXPECT_DOUBLE_EQ(median_us({}), 0);
  EXPECT_DOUBLE_EQ(relative_spread(std::vector<double>{5, 5, 5, 5}), 0);
}

TEST(Inputs, RandomOnesAreTheSameForASeedAndWithinRange) {
  GraphBuilder builder("g");
  builder.add_input("f", DType::kF32, {64});
  builder.add_input("i", DType::kI64, {64});
  const auto graph = builder.build();
  ASSERT_TRUE(graph.ok());
  const auto a = make_inputs(**graph, {.seed = 5}).value(), b = make_inputs(**graph, {.seed = 5}).value(),
             c = make_inputs(**graph, {.seed = 6}).value();
  for (size_t i = 0; i < a.size(); ++i)
    EXPECT_EQ(std::memcmp(a[i].data.get(), b[i].data.get(), static_cast<size_t>(a[i].bytes)), 0);
  EXPECT_NE(std::memcmp(a[0].data.get(), c[0].data.get(), static_cast<size_t>(a[0].bytes)), 0);
  for (int64_t k = 0; k < 64; ++k) {
    EXPECT_LE(std::fabs(element_as_double(a[0].view(), k)), 1);
    EXPECT_LT(element_as_double(a[1].view(), k), 4);
  }
  const auto wrong = make_inputs(**graph, {.files = {{"g", "x.npy"}}});
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.error().to_string().find("there is no input 'g'"), std::string::npos);
}

}  // namespace
}  // namespace heddle
