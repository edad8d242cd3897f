#include "corpus/corpus.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <regex>
#include <sstream>

#include "heddle/base/random.h"
#include "heddle/graph/region_faults.h"
#include "onnx/onnx_file.h"
#include "onnx/onnx_wire.h"

namespace heddle {
namespace {

std::string read_all(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

ov::element::Type element_type(uint64_t onnx) {
  switch (onnx) {
    case 1:
      return ov::element::f32;
    case 2:
    case 18:  // an 8-bit type that OpenVINO does not have: as its bytes
    case 20:
      return ov::element::u8;
    case 3:
      return ov::element::i8;
    case 4:
      return ov::element::u16;
    case 5:
      return ov::element::i16;
    case 6:
      return ov::element::i32;
    case 7:
      return ov::element::i64;
    case 9:
      return ov::element::boolean;
    case 10:
      return ov::element::f16;
    case 11:
      return ov::element::f64;
    case 12:
      return ov::element::u32;
    case 13:
      return ov::element::u64;
    case 16:
      return ov::element::bf16;
    case 17:
      return ov::element::f8e4m3;
    case 19:
      return ov::element::f8e5m2;
    case 21:
      return ov::element::u4;
    case 22:
      return ov::element::i4;
    case 23:
      return ov::element::f4e2m1;
    case 24:
      return ov::element::f8e8m0;
    default:
      return ov::element::dynamic;
  }
}

ov::Core& core() {
  static auto* instance = new ov::Core();
  return *instance;
}

// Two to a byte, the first one in the lower half.
int four_bits(const ov::Tensor& t, size_t i) {
  return static_cast<const uint8_t*>(t.data())[i / 2] >> (i % 2 * 4) & 15;
}

double at(const ov::Tensor& t, size_t i) {
  switch (static_cast<ov::element::Type_t>(t.get_element_type())) {
    case ov::element::Type_t::f32:
      return t.data<float>()[i];
    case ov::element::Type_t::f64:
      return t.data<double>()[i];
    case ov::element::Type_t::f16:
      return static_cast<float>(t.data<ov::float16>()[i]);
    case ov::element::Type_t::bf16:
      return static_cast<float>(t.data<ov::bfloat16>()[i]);
    case ov::element::Type_t::i64:
      return static_cast<double>(t.data<int64_t>()[i]);
    case ov::element::Type_t::u64:
      return static_cast<double>(t.data<uint64_t>()[i]);
    case ov::element::Type_t::i32:
      return t.data<int32_t>()[i];
    case ov::element::Type_t::u32:
      return t.data<uint32_t>()[i];
    case ov::element::Type_t::i16:
      return t.data<int16_t>()[i];
    case ov::element::Type_t::u16:
      return t.data<uint16_t>()[i];
    case ov::element::Type_t::i8:
      return t.data<int8_t>()[i];
    case ov::element::Type_t::f8e4m3:
      return static_cast<float>(static_cast<const ov::float8_e4m3*>(t.data())[i]);
    case ov::element::Type_t::f8e5m2:
      return static_cast<float>(static_cast<const ov::float8_e5m2*>(t.data())[i]);
    case ov::element::Type_t::f8e8m0:
      return static_cast<float>(static_cast<const ov::float8_e8m0*>(t.data())[i]);
    case ov::element::Type_t::f4e2m1:
      return static_cast<float>(ov::float4_e2m1::from_bits(static_cast<uint8_t>(four_bits(t, i))));
    case ov::element::Type_t::u4:
      return four_bits(t, i);
    case ov::element::Type_t::i4:
      return four_bits(t, i) < 8 ? four_bits(t, i) : four_bits(t, i) - 16;
    default:
      return static_cast<const uint8_t*>(t.data())[i];
  }
}

// Names of the file's inputs without a weight, which the corpus numbers.
std::vector<std::string> inputs_of(const std::string& path) {
  const std::string file = read_all(path);
  std::vector<std::string> names;
  const auto onnx = internal::parse_onnx(file);
  if (!onnx) return names;
  for (const auto& input : onnx->graph.inputs)
    if (std::ranges::count(onnx->graph.initializers, input.name, &internal::OnnxTensor::name) == 0)
      names.emplace_back(input.name);
  return names;
}

}  // namespace

std::vector<CorpusCase> corpus_cases() {
  const std::string root = HEDDLE_CORPUS;
  std::ifstream index(root + "/index.tsv");
  EXPECT_TRUE(index.good()) << "no corpus in " << root << ": run scripts/dump_onnx_corpus.py " << root;
  std::vector<CorpusCase> cases;
  std::string line;
  while (std::getline(index, line)) {
    std::istringstream words(line);
    CorpusCase c;
    words >> c.kind >> c.name >> c.sets;
    c.folder = root + "/" + c.kind + "/" + c.name;
    cases.push_back(std::move(c));
  }
  return cases;
}

std::vector<CorpusCase> corpus_cases(const std::string& kind) {
  auto cases = corpus_cases();
  std::erase_if(cases, [&](const CorpusCase& c) { return c.kind != kind; });
  return cases;
}

ov::Tensor read_tensor(const std::string& path) {
  const std::string content = read_all(path);
  if (content.empty()) return {};
  internal::WireReader reader(content, content.data());
  ov::Shape shape;
  ov::element::Type type = ov::element::dynamic;
  std::string_view raw;
  std::string small;  // int32_data of types of at most 8 bits: a byte each
  while (!reader.done()) {
    auto field = reader.next();
    if (!field) return {};
    if (field->number == 1 && field->type == internal::WireField::kVarint) shape.push_back(field->value);
    if (field->number == 1 && field->type == internal::WireField::kBytes) {
      internal::WireReader dims(field->bytes, content.data());
      while (!dims.done()) shape.push_back(dims.varint().value());
    }
    if (field->number == 2) type = element_type(field->value);
    if (field->number == 5 && field->type == internal::WireField::kVarint)
      small.push_back(static_cast<char>(field->value));
    if (field->number == 5 && field->type == internal::WireField::kBytes) {
      internal::WireReader list(field->bytes, content.data());
      while (!list.done()) small.push_back(static_cast<char>(list.varint().value()));
    }
    // Typed lists: floats lie in the file as they do in memory.
    if (field->number == 9 || (field->number == 4 && field->type == internal::WireField::kBytes))
      raw = field->bytes;
  }
  if (type == ov::element::dynamic) return {};
  ov::Tensor tensor(type, shape);
  if (raw.empty() && type.bitwidth() <= 8) raw = small;
  if (tensor.get_byte_size() != raw.size()) return {};
  if (!raw.empty()) std::memcpy(tensor.data(), raw.data(), raw.size());
  return tensor;
}

Result<std::shared_ptr<const Model>> load_case(const CorpusCase& c) {
  const std::string path = c.folder + "/model.onnx";
  auto model = Model::load(path);
  if (model) return model;
  ImportOptions options;
  const std::string text = model.error().message();
  const auto names = inputs_of(path);
  const std::regex advice("--value ([^= ]+)=V1");
  for (auto it = std::sregex_iterator(text.begin(), text.end(), advice); it != std::sregex_iterator(); ++it) {
    const auto number = std::ranges::find(names, (*it)[1].str()) - names.begin();
    const auto tensor = read_tensor(c.folder + "/set_0_input_" + std::to_string(number) + ".pb");
    if (!tensor) continue;
    auto& values = options.values[(*it)[1]];
    for (size_t i = 0; i < tensor.get_size(); ++i) values.push_back(at(tensor, i));
  }
  return options.values.empty() ? model : Model::load(path, options);
}

std::optional<std::map<TensorId, ov::Tensor>> case_inputs(const CorpusCase& c, const Model& model) {
  std::map<TensorId, ov::Tensor> values;
  const auto names = inputs_of(c.folder + "/model.onnx");
  size_t next = 0;
  for (size_t number = 0; number < names.size(); ++number) {
    if (model.options().values.contains(names[number])) continue;
    if (next == model.graph()->inputs().size()) return std::nullopt;
    const auto tensor = read_tensor(c.folder + "/set_0_input_" + std::to_string(number) + ".pb");
    const auto port = model.whole()->inputs()[next];
    if (!tensor || tensor.get_element_type() != port.get_element_type() ||
        tensor.get_shape() != port.get_shape())
      return std::nullopt;
    values[model.graph()->inputs()[next++]] = tensor;
  }
  return values;
}

std::map<TensorId, ov::Tensor> run_segment(const SegmentModel& segment,
                                           const std::map<TensorId, ov::Tensor>& values) {
  auto compiled = core().compile_model(segment.model, "CPU", ov::hint::inference_precision(ov::element::f32),
                                       ov::inference_num_threads(1));
  auto request = compiled.create_infer_request();
  for (size_t i = 0; i < segment.inputs.size(); ++i)
    request.set_input_tensor(i, values.at(segment.inputs[i]));
  const RegionFaults faults;
  request.infer();
  if (!faults.status().ok()) throw std::runtime_error(faults.status().error().to_string());
  std::map<TensorId, ov::Tensor> results;
  for (size_t i = 0; i < segment.outputs.size(); ++i) {
    const auto from = request.get_output_tensor(i);
    ov::Tensor copy(from.get_element_type(), from.get_shape());
    from.copy_to(copy);
    results.emplace(segment.outputs[i], copy);
  }
  return results;
}

SegmentModel whole_segment(const Model& model) {
  SegmentModel segment;
  segment.model = model.whole();
  segment.inputs.assign(model.graph()->inputs().begin(), model.graph()->inputs().end());
  segment.outputs.assign(model.graph()->outputs().begin(), model.graph()->outputs().end());
  return segment;
}

std::map<TensorId, ov::Tensor> run_in_parts(const Model& model, int parts, uint64_t seed,
                                            const std::map<TensorId, ov::Tensor>& inputs, std::string* error,
                                            const std::vector<OpId>& but) {
  const Graph& graph = *model.graph();
  Random random(seed);
  // A random topological order: any run of it is convex.
  std::vector<size_t> waiting(graph.num_ops());
  std::vector<OpId> ready, order;
  for (size_t i = 0; i < graph.num_ops(); ++i)
    if ((waiting[i] = graph.predecessors(OpId(i)).size()) == 0) ready.push_back(OpId(i));
  while (!ready.empty()) {
    std::swap(ready[random.below(ready.size())], ready.back());
    const OpId op = ready.back();
    ready.pop_back();
    order.push_back(op);
    for (const auto next : graph.successors(op))
      if (--waiting[next.index()] == 0) ready.push_back(next);
  }
  std::erase_if(order, [&but](OpId op) { return std::find(but.begin(), but.end(), op) != but.end(); });
  std::vector<size_t> ends;
  for (int i = 1; i < parts; ++i) ends.push_back(1 + random.below(order.size()));
  ends.push_back(order.size());
  std::sort(ends.begin(), ends.end());
  auto values = inputs;
  size_t begin = 0;
  for (const size_t end : ends) {
    if (end == begin) continue;
    auto segment = model.cut(std::span<const OpId>(order).subspan(begin, end - begin));
    if (!segment) {
      *error = segment.error().to_string();
      return values;
    }
    for (auto& [id, tensor] : run_segment(*segment, values)) values.insert_or_assign(id, tensor);
    begin = end;
  }
  return values;
}

std::string softmax_difference(const ov::Tensor& logits, const ov::Tensor& expected, double rtol) {
  const size_t n = expected.get_size();
  if (logits.get_size() != n) return "it has another size than the softmax";
  double largest = 0;
  for (size_t i = 0; i < n; ++i) largest = std::max(largest, std::abs(at(logits, i)));
  for (size_t i = 0; i < n; ++i) {
    const double a = at(logits, i) - at(logits, 0), e = std::log(at(expected, i) / at(expected, 0));
    if (std::abs(a - e) <= rtol * std::max(1., largest)) continue;
    std::ostringstream text;
    text << "element " << i << " is " << a << " above the first, expected " << e;
    return text.str();
  }
  return "";
}

std::string difference(const ov::Tensor& actual, const ov::Tensor& expected, double rtol, double atol) {
  std::ostringstream text;
  if (actual.get_shape() != expected.get_shape()) {
    text << "shape " << actual.get_shape() << ", expected " << expected.get_shape();
    return text.str();
  }
  for (size_t i = 0; i < expected.get_size(); ++i) {
    const double a = at(actual, i), e = at(expected, i);
    if ((std::isnan(a) && std::isnan(e)) || a == e) continue;
    if (std::abs(a - e) <= atol + rtol * std::abs(e)) continue;
    text << "element " << i << " is " << a << ", expected " << e;
    return text.str();
  }
  return "";
}

std::string reason_class(const Error& error) {
  std::string text = error.message();
  text = std::regex_replace(text, std::regex("'[^']*'"), "'*'");
  return std::regex_replace(text, std::regex("[0-9]+"), "#");
}

}  // namespace heddle
