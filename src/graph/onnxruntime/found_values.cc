#include "found_values.h"

#include <algorithm>

#include "heddle/base/random.h"

namespace heddle::internal {
namespace {

using onnxruntime::Api;
using onnxruntime::TensorInfo;

constexpr int kRuns = 3, kLeastRuns = 2, kWithoutOptimization = 0;

template <class T>
void fill(ov::Tensor& tensor, const auto& next) {
  auto* data = static_cast<T*>(tensor.data());
  for (size_t i = 0; i < tensor.get_size(); ++i) data[i] = static_cast<T>(next());
}

// Run 0 has zeros, run 1 ones; later ones have random numbers: reals in [-1, 1), whole numbers of 0 to 3.
ov::Tensor sample(const RegionValue& input, int run, Random& random) {
  const auto type = region_type(input.type);
  ov::Tensor tensor(type, input.shape.to_shape());
  const bool real = type.is_real();
  const auto next = [&]() -> double {
    if (run < 2) return run;
    return real ? 2 * random.unit() - 1 : static_cast<double>(random.below(4));
  };
  switch (static_cast<ov::element::Type_t>(type)) {
    case ov::element::Type_t::f32:
      fill<float>(tensor, next);
      break;
    case ov::element::Type_t::f64:
      fill<double>(tensor, next);
      break;
    case ov::element::Type_t::f16:
      fill<ov::float16>(tensor, next);
      break;
    case ov::element::Type_t::bf16:
      fill<ov::bfloat16>(tensor, next);
      break;
    case ov::element::Type_t::boolean:
      fill<uint8_t>(tensor, [&] { return next() != 0; });
      break;
    default:
      if (type.bitwidth() == 8) fill<uint8_t>(tensor, next);
      if (type.bitwidth() == 16) fill<uint16_t>(tensor, next);
      if (type.bitwidth() == 32) fill<uint32_t>(tensor, next);
      if (type.bitwidth() == 64) fill<uint64_t>(tensor, next);
  }
  return tensor;
}

ov::PartialShape partial(const Shape& shape) {
  return std::vector<ov::Dimension>(shape.begin(), shape.end());
}

class Finder {
 public:
  Finder(const Api& api, std::span<const RegionValue> inputs, std::span<const std::string> outputs)
      : api_(api), inputs_(inputs), outputs_(outputs) {}

  Result<std::vector<FoundValue>> find(const std::string& bytes) {
    auto session = onnxruntime::open_session(
        api_,
        [&](onnxruntime::SessionOptions* options) -> Status {
          // One thread: a forked child has no others.
          HEDDLE_RETURN_IF_ERROR(onnxruntime::use_cores(api_, options, {0}));
          return onnxruntime::checked(api_, api_.set_optimization(options, kWithoutOptimization),
                                      "setting options");
        },
        [&](onnxruntime::SessionOptions* options, onnxruntime::Session** session) {
          return api_.create_session_from_bytes(api_.env, bytes.data(), bytes.size(), options, session);
        });
    if (!session) return unsupported(session.error().message() + "; export the model with other operators");
    session_ = std::move(*session);
    HEDDLE_RETURN_IF_ERROR(infer());
    if (std::ranges::any_of(found_, &FoundValue::by_run)) HEDDLE_RETURN_IF_ERROR(run_all());
    return std::move(found_);
  }

 private:
  Status infer() {
    for (size_t i = 0; i < outputs_.size(); ++i) {
      HEDDLE_ASSIGN_OR_RETURN(const TensorInfo info, onnxruntime::output_info(api_, session_.get(), i));
      FoundValue found{{outputs_[i], info.type, partial(info.shape)}, false};
      // The library gives an unknown rank as that of a scalar.
      found.by_run = info.type != 0 && (info.shape.empty() || found.value.shape.is_dynamic());
      found_.push_back(std::move(found));
    }
    return {};
  }

  Status run_all() {
    std::vector<const char*> inputs, outputs;
    for (const auto& input : inputs_) inputs.push_back(input.name.c_str());
    for (const auto& output : outputs_) outputs.push_back(output.c_str());
    Random random(1);
    Status failed;
    int ended = 0;
    for (int run = 0; run < kRuns; ++run) {
      std::vector<ov::Tensor> tensors;
      onnxruntime::Values values(api_), results(api_);
      for (const auto& input : inputs_) {
        auto& tensor = tensors.emplace_back(sample(input, run, random));
        const Shape shape(tensor.get_shape().begin(), tensor.get_shape().end());
        HEDDLE_RETURN_IF_ERROR(
            values.add_typed(input.type, shape, tensor.data(), static_cast<int64_t>(tensor.get_byte_size())));
      }
      results.expect(outputs.size());
      Status done =
          onnxruntime::checked(api_,
                               api_.run(session_.get(), nullptr, inputs.data(), values.inputs(),
                                        values.size(), outputs.data(), outputs.size(), results.outputs()),
                               "a run on sample inputs, which shows sizes that inference leaves open");
      if (done.ok())
        HEDDLE_RETURN_IF_ERROR(learn(results, ended++ == 0));
      else
        failed = std::move(done);
    }
    if (ended >= kLeastRuns) return {};
    return unsupported(failed.error().message() + advice());
  }

  // Sizes are values of vectors and scalars.
  std::string advice() const {
    std::string text;
    for (const auto& input : inputs_)
      if (input.shape.rank().get_length() < 2)
        text += (text.empty() ? "; if inputs set sizes, give their values, as in --value " : " --value ") +
                input.name + "=V1,V2,...";
    return text;
  }

  Status learn(const onnxruntime::Values& results, bool first) {
    for (size_t i = 0; i < found_.size(); ++i) {
      auto& shape = found_[i].value.shape;
      if (!found_[i].by_run) continue;
      HEDDLE_ASSIGN_OR_RETURN(const TensorInfo info, onnxruntime::tensor_info(api_, results[i]));
      const auto seen = partial(info.shape);
      if (first)
        shape = seen;
      else if (shape.rank() != seen.rank())
        shape = ov::PartialShape::dynamic();
      else if (shape.rank().is_static())
        for (size_t d = 0; d < seen.size(); ++d)
          if (shape[d] != seen[d]) shape[d] = ov::Dimension::dynamic();
    }
    return {};
  }

  const Api& api_;
  std::span<const RegionValue> inputs_;
  std::span<const std::string> outputs_;
  onnxruntime::SessionPtr session_{nullptr, api_.release_session};
  std::vector<FoundValue> found_;
};

}  // namespace

Result<std::vector<FoundValue>> find_values(const std::string& bytes, std::span<const RegionValue> inputs,
                                            std::span<const std::string> outputs) {
  HEDDLE_ASSIGN_OR_RETURN(const Api* api, onnxruntime::library());
  return Finder(*api, inputs, outputs).find(bytes);
}

}  // namespace heddle::internal
