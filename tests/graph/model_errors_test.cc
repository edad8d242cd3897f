// Malformed and hostile models: each is rejected with exactly this message.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <functional>

#include "graph/model_files.h"
#include "graph/onnx_writer.h"
#include "heddle/base/random.h"
#include "heddle/graph/model.h"

namespace heddle {
namespace {

using namespace onnx_writer;

struct BadModel {
  const char* name;
  std::function<std::string()> file;
  const char* message;  // without the path before it
  ImportOptions options = {};
};

GraphParts relu() {
  return {{node("Relu", {"x"}, {"y"}, "r")}, {value("x", {2, 2})}, {value("y", {2, 2})}, {}};
}
std::string one_node(const std::string& n) {
  return model({{n}, {value("x", {2, 2})}, {value("y", {2, 2})}, {}});
}
std::string add_weight(const std::string& tensor) {
  return model({{node("Add", {"x", "w"}, {"y"}, "a")}, {value("x", {2, 2})}, {value("y", {2, 2})}, {tensor}});
}
std::string external(const std::vector<std::pair<std::string, std::string>>& entries) {
  return add_weight(external_tensor("w", {2, 2}, entries));
}
// An If whose branch contains an If, and so on, `depth` levels.
std::string nested(int depth) {
  const std::string leaf = graph({{node("Relu", {"x"}, {"o"})}, {}, {value("o", {2, 2})}, {}});
  std::string body = leaf;
  for (int i = 0; i < depth; ++i) {
    const std::string n = node("If", {"c"}, {"o"}, "",
                               {attribute_graph("then_branch", body), attribute_graph("else_branch", leaf)});
    body = graph({{n}, {}, {value("o", {2, 2})}, {}});
  }
  return number(1, 8) + bytes(7, body + bytes(11, value("x", {2, 2})) + bytes(11, value("c", {}, kBool))) +
         bytes(8, number(2, 17));
}
// A model that calls its function f, which has one node.
std::string calling(const std::string& body, const std::vector<std::string>& inputs = {"x"},
                    int64_t opset = 17) {
  return model({{node("f", inputs, {"y"}, "call", {}, "own")},
                {value("x", {2, 2})},
                {value("y", {2, 2})},
                {}}) +
         bytes(25, function("f", {body}, {}, opset));
}
GraphParts with_input(const std::string& v) {
  return {{node("Relu", {"x"}, {"y"}, "r")}, {v}, {value("y", {2, 2})}, {}};
}

const std::vector<BadModel>& bad_models() {
  static const std::vector<BadModel> list = {
      {"Empty", [] { return std::string(); }, "the file is empty; an ONNX model is expected"},
      {"Text", [] { return std::string("not a model\n"); },
       "model: byte 0: a field has wire type 6; this is not ONNX"},
      {"NoGraph", [] { return number(1, 8); }, "there is no graph in it; is this an ONNX model?"},
      {"TwoGraphs", [] { return model(relu()) + bytes(7, graph(relu())); },
       "byte 70: the graph is given twice"},
      {"Truncated", [] { return model(relu()).substr(0, 40); },
       "model: byte 2: a field says that it has 62 bytes, but 36 are left (is the file truncated?)"},
      {"LongNumber", [] { return std::string(11, '\xff'); },
       "model: byte 0: a number is longer than 64 bits; this is not valid protobuf"},
      {"DeepSubgraphs", [] { return nested(20); }, "byte 546: subgraphs are nested more than 16 deep"},
      {"NewOpset", [] { return model(relu(), 999); },
       "opset 999 of the standard operators is newer than 28, the newest known; export the model for an "
       "older one"},
      {"NegativeOpset", [] { return model(relu(), -3); },
       "opset -3 of the standard operators does not exist"},
      {"NoOpset", [] { return number(1, 8) + bytes(7, graph(relu())); },
       "node 'r' (Relu): is a standard operator, but the file imports no opset of them"},
      {"FunctionThatCallsItself", [] { return calling(node("f", {"a"}, {"b"}, "again", {}, "own")); },
       "function 'f': calls are nested more than 32 deep; does it call itself?"},
      {"FunctionWithMoreInputsThanItHas",
       [] {
         return calling(node("Relu", {"a"}, {"b"}), {"x", "x"});
       },
       "function 'f': a call has 2 inputs and 1 outputs, but the function has 1 and 1"},
      {"FunctionTwice",
       [] {
         return calling(node("Relu", {"a"}, {"b"})) + bytes(25, function("f", {node("Relu", {"a"}, {"b"})}));
       },
       "function 'f' is defined twice"},
      {"FunctionThatIsMissing", [] { return calling(node("g", {"a"}, {"b"}, "", {}, "own")); },
       "node 'y' (g): OpenVINO does not support the operator 'own.g'; as a part that ONNX Runtime runs: ONNX "
       "Runtime failed at loading: This is an invalid model. In Node, (\"\", g, \"own\", -1) : (\"x\": "
       "tensor(float),) -> (\"y\",) , Error No opset import for domain 'own'; export the model with other "
       "operators"},
      {"FunctionOfOtherOpset", [] { return calling(node("Softmax", {"a"}, {"b"}), {"x"}, 12); },
       "function 'f': it uses 'Softmax' of opset 12, but the model has opset 17, where that operator "
       "differs; "
       "export the model for one opset"},
      {"FunctionsThatGrowWithoutMeasure",
       [] {
         std::string file = calling(node("f1", {"a"}, {"b"}, "", {}, "own"));
         for (int i = 1; i < 30; ++i) {
           const std::string next = "f" + std::to_string(i + 1);
           file += bytes(25, function("f" + std::to_string(i), {node(next, {"a"}, {"m"}, "", {}, "own"),
                                                                node(next, {"m"}, {"b"}, "", {}, "own")}));
         }
         return file + bytes(25, function("f30", {node("Relu", {"a"}, {"b"})}));
       },
       "function 'f': its functions make more than 2000000 nodes or 256 MiB when they are inlined; export "
       "the "
       "model "
       "without functions"},
      // Half a gigabyte from a file of a megabyte.
      {"FunctionThatRepeatsALongName",
       [] {
         return calling(node("Concat", std::vector<std::string>(512, "a"), {"b"}),
                        {std::string(size_t{1} << 20, 'n')});
       },
       "function 'f': its functions make more than 2000000 nodes or 256 MiB when they are inlined; export "
       "the "
       "model "
       "without functions"},
      {"UnknownOperator", [] { return one_node(node("Rellu", {"x"}, {"y"}, "r")); },
       "node 'r' (Rellu): there is no standard operator 'Rellu' (did you mean 'Relu'?)"},
      {"OperatorOfLaterOpset", [] { return one_node(node("Gelu", {"x"}, {"y"}, "g")); },
       "node 'g' (Gelu): operator 'Gelu' came with opset 20, but the file imports opset 17"},
      {"UnknownDomain", [] { return one_node(node("Magic", {"x"}, {"y"}, "m", {}, "com.example")); },
       "node 'm' (Magic): OpenVINO does not support the operator 'com.example.Magic'; as a part that ONNX "
       "Runtime runs: ONNX Runtime failed at loading: This is an invalid model. In Node, (\"m\", Magic, "
       "\"com.example\", -1) : (\"x\": tensor(float),) -> (\"y\",) , Error No opset import for domain "
       "'com.example'; export the model with other operators"},
      {"NoOperator", [] { return one_node(node("", {"x"}, {"y"}, "n")); }, "node 'n' (): names no operator"},
      {"TooFewInputs", [] { return one_node(node("Conv", {"x"}, {"y"}, "c")); },
       "node 'c' (Conv): has 1 inputs, but opset 17 expects 2 to 3"},
      {"TooManyInputs",
       [] {
         return one_node(node("Relu", {"x", "x"}, {"y"}, "r"));
       },
       "node 'r' (Relu): has 2 inputs, but opset 17 expects 1"},
      {"InputLeftOut",
       [] {
         return one_node(node("Add", {"", "x"}, {"y"}, "a"));
       },
       "node 'a' (Add): input 0 is left out, but is required"},
      {"TooManyOutputs",
       [] {
         return one_node(node("Relu", {"x"}, {"y", "z"}, "r"));
       },
       "node 'r' (Relu): has 2 outputs, but opset 17 expects 1"},
      {"AttributeMissing", [] { return one_node(node("Cast", {"x"}, {"y"}, "k")); },
       "node 'k' (Cast): the attribute 'to' is missing"},
      {"AttributeTwice",
       [] {
         return one_node(node("Cast", {"x"}, {"y"}, "k", {attribute_int("to", 1), attribute_int("to", 7)}));
       },
       "node 'k' (Cast): attribute 'to' is given twice"},
      {"DanglingInput", [] { return one_node(node("Relu", {"q"}, {"y"}, "r")); },
       "node 'r' (Relu): reads 'q', but no node, input or initializer provides it"},
      {"DanglingOutput", [] { return one_node(node("Relu", {"x"}, {"z"}, "r")); },
       "output 'y': no node, input or initializer provides it"},
      {"DuplicateOutput",
       [] {
         return model({{node("Relu", {"x"}, {"y"}, "r"), node("Abs", {"x"}, {"y"}, "s")},
                       {value("x", {2})},
                       {value("y", {2})},
                       {}});
       },
       "node 's' (Abs): its output 'y' is defined twice"},
      {"DuplicateInput",
       [] {
         return model(
             {{node("Relu", {"x"}, {"y"})}, {value("x", {2}), value("x", {2})}, {value("y", {2})}, {}});
       },
       "two inputs have the name 'x'"},
      {"DuplicateInitializer",
       [] {
         const auto w = float_tensor("w", {2}, {1, 2});
         return model({{node("Add", {"x", "w"}, {"y"})}, {value("x", {2})}, {value("y", {2})}, {w, w}});
       },
       "two initializers have the name 'w'"},
      {"Cycle",
       [] {
         return model({{node("Add", {"x", "b"}, {"a"}, "first"), node("Relu", {"a"}, {"b"}, "second"),
                        node("Relu", {"b"}, {"y"}, "last")},
                       {value("x", {2})},
                       {value("y", {2})},
                       {}});
       },
       "node 'first' (Add): its output leads back to its input; the graph has a cycle"},
      {"CycleThroughSubgraph",
       [] {
         const auto body = graph({{node("Relu", {"y"}, {"o"})}, {}, {value("o", {2, 2})}, {}});
         return model({{node("If", {"c"}, {"y"}, "i",
                             {attribute_graph("then_branch", body), attribute_graph("else_branch", body)})},
                       {value("c", {}, kBool)},
                       {value("y", {2, 2})},
                       {}});
       },
       "node 'i' (If): its output leads back to its input; the graph has a cycle"},
      {"NoOutputs",
       [] {
         return model({{node("Relu", {"x"}, {"y"})}, {value("x", {2})}, {}, {}});
       },
       "graph 'g' has no outputs"},
      {"NegativeDimension",
       [] {
         return model(with_input(value("x", {-7, 2})));
       },
       "input 'x': dimension -7 is negative"},
      {"HugeInput",
       [] {
         return model(with_input(value("x", {int64_t{1} << 40, int64_t{1} << 40})));
       },
       "input 'x': its shape is more than fits in memory"},
      {"UnknownType", [] { return model(with_input(value("x", {2}, 99))); },
       "input 'x': element type 99 does not exist"},
      {"ComplexType", [] { return model(with_input(value("x", {2}, 14))); },
       "input 'x': element type complex64 is not supported by OpenVINO; as a part that ONNX Runtime runs: "
       "input "
       "'x' has the type complex64, which no plan can hold; export the model with tensors of numbers there"},
      {"SequenceInput",
       [] { return model(with_input(bytes(1, "x") + bytes(2, bytes(4, bytes(1, bytes(1, number(1, 1))))))); },
       "input 'x': it is a sequence; plans move tensors of numbers, so export the model with such tensors at "
       "its ends"},
      {"UntypedInput", [] { return model(with_input(bytes(1, "x"))); }, "input 'x': it has no type"},
      {"TooManyDimensions", [] { return model(with_input(value("x", std::vector<int64_t>(40, 1)))); },
       "byte 170: a value has more than 32 dimensions"},
      {"WeightNegative", [] { return add_weight(float_tensor("w", {-2}, {1})); },
       "initializer 'w': has shape -2; dimensions must be at least 0"},
      {"WeightHuge",
       [] {
         return add_weight(float_tensor("w", {int64_t{1} << 40, int64_t{1} << 40}, {1}));
       },
       "initializer 'w': has shape 1099511627776x1099511627776, more than fits in memory"},
      {"WeightShort",
       [] {
         return add_weight(float_tensor("w", {2, 2}, {1, 2, 3}));
       },
       "initializer 'w': of type float and shape 2x2 needs 16 bytes, but has 12"},
      {"WeightEmpty",
       [] {
         return add_weight(tensor_head("w", {2, 2}));
       },
       "initializer 'w': of type float and shape 2x2 needs 4 numbers, but has 0"},
      {"WeightTwice", [] { return add_weight(float_tensor("w", {1}, {1}) + bytes(4, raw_of<float>({1}))); },
       "initializer 'w': of type float and shape 1 has its data twice, raw and as a list"},
      {"WeightWrongList", [] { return add_weight(tensor_head("w", {1}) + bytes(7, varint(5))); },
       "initializer 'w': of type float and shape 1 keeps its data in a list of another type"},
      {"SparseWeight",
       [] { return number(1, 8) + bytes(7, graph(relu()) + bytes(15, "")) + bytes(8, number(2, 17)); },
       "graph 'g': sparse initializers are not supported; store them dense"},
      {"ExternalNoFile",
       [] {
         return external({{"offset", "0"}});
       },
       "initializer 'w': its external data names no file (the key 'location' is missing)"},
      {"ExternalAbsolute",
       [] {
         return external({{"location", "/etc/passwd"}});
       },
       "initializer 'w': its external data lies in '/etc/passwd', expected a path relative to the model's "
       "folder"},
      {"ExternalParent",
       [] {
         return external({{"location", "a/../../secret"}});
       },
       "initializer 'w': its external data lies in 'a/../../secret', which leads out of the model's folder"},
      {"ExternalMemory",
       [] {
         return external({{"location", "*/_ORT_MEM_ADDR_/*"}, {"offset", "4096"}});
       },
       "initializer 'w': its external data lies in '*/_ORT_MEM_ADDR_/*', which is not a file but a place in "
       "memory"},
      {"ExternalMissing",
       [] {
         return external({{"location", "gone.bin"}});
       },
       "initializer 'w': its external data 'gone.bin' cannot be read: No such file or directory"},
      {"ExternalLink",
       [] {
         return external({{"location", "link.bin"}});
       },
       "initializer 'w': its external data 'link.bin' is a link that leads out of the model's folder"},
      {"ExternalFolder",
       [] {
         return external({{"location", "folder"}});
       },
       "initializer 'w': its external data 'folder' is not a regular file"},
      {"ExternalBeyondEnd",
       [] {
         return external({{"location", "w.bin"}, {"offset", "8"}});
       },
       "initializer 'w': needs 16 bytes at offset 8 of 'w.bin', which has 16 bytes"},
      {"ExternalHugeOffset",
       [] {
         return external({{"location", "w.bin"}, {"offset", "9223372036854775807"}});
       },
       "initializer 'w': needs 16 bytes at offset 9223372036854775807 of 'w.bin', which has 16 bytes"},
      {"ExternalBadOffset",
       [] {
         return external({{"location", "w.bin"}, {"offset", "-4"}});
       },
       "initializer 'w': its external data has offset '-4', expected a whole number of bytes, at least 0"},
      {"ExternalWrongLength",
       [] {
         return external({{"location", "w.bin"}, {"length", "8"}});
       },
       "initializer 'w': of shape 2x2 needs 16 bytes, but its external data has length 8"},
      {"ExternalKeyTwice",
       [] {
         return external({{"location", "w.bin"}, {"location", "v.bin"}});
       },
       "initializer 'w': its external data gives 'location' twice"},
      {"ShapesDoNotFit",
       [] {
         return model({{node("MatMul", {"x", "z"}, {"y"}, "m")},
                       {value("x", {2, 3}), value("z", {4, 5})},
                       {value("y", {2, 5})},
                       {}});
       },
       "node 'm' (MatMul): OpenVINO rejects it: Incompatible MatMul matrix dimension. First input "
       "dimension=3 at COL_INDEX_DIM=1 "
       "doesn't match the second input dimension=4 at ROW_INDEX_DIM=0; as a part that ONNX Runtime runs: "
       "ONNX "
       "Runtime failed at loading: Node (m) Op (MatMul) [ShapeInferenceError] Incompatible dimensions for "
       "matrix "
       "multiplication; export the model with other operators"},
      {"StringModel",
       [] {
         return model({{node("Identity", {"x"}, {"y"}, "i")},
                       {value("x", {2}, kString)},
                       {value("y", {2}, kString)},
                       {}});
       },
       "input 'x' is made of strings; plans move tensors of numbers, so turn text into numbers before the "
       "model"},
      {"DataDependentShape",
       [] {
         return model({{node("Range", {"zero", "x", "one"}, {"i"}, "count")},
                       {value("x", {}, kInt64)},
                       {value("i", {-1}, kInt64)},
                       {int_tensor("zero", {}, {0}), int_tensor("one", {}, {1})}});
       },
       "op 'count' (Range): its output has the shape [?], which depends on data and has no limit; plans need "
       "sizes, or limits of them, that follow from those of the inputs: export the model so that this size "
       "is fixed, or give the values of inputs that set it: --value x=V1 (the limit of node 'count' "
       "(Range))"},
      {"DynamicInput",
       [] {
         return model(with_input(value("x", {-1, 3, -1})));
       },
       "input 'x' has shape ?x3x?: give it with --shape x=1,3,H"},
      {"DynamicInputWithNames",
       [] {
         return model(with_input(named_value("x", {"batch", "3", "width"})));
       },
       "input 'x' has shape ?x3x?: give it with --shape x=1,3,width"},
      {"RankThatShapesMayGive",
       [] {
         return model({{node("Squeeze", {"x"}, {"s"}, "squeeze"), node("Conv", {"s", "w"}, {"y"}, "conv")},
                       {named_value("x", {"batch", "2", "1", "6", "width"})},
                       {named_value("y", {"batch", "1", "h", "w"})},
                       {float_tensor("w", {1, 2, 1, 1}, {1, 2})}});
       },
       "node 'conv' (Conv): OpenVINO rejects it: The input data tensor's rank has to be known (static); it "
       "may "
       "need the inputs' shapes: input 'x' has shape ?x2x1x6x?: give it with --shape x=1,2,1,6,width"},
      {"UnknownShapeName",
       [] {
         return model(with_input(value("x", {-1, 3})));
       },
       "--shape names input 'images', which the model does not have; its inputs are 'x'",
       {.shapes = {{"images", {1, 3}}}, .max_file_bytes = 1 << 20}},
      {"ShapeOfOtherRank",
       [] {
         return model(with_input(value("x", {-1, 3})));
       },
       "input 'x' has shape ?x3, but --shape gives it 1x3x4; the number of dimensions differs",
       {.shapes = {{"x", {1, 3, 4}}}, .max_file_bytes = 1 << 20}},
      {"ShapeThatContradicts",
       [] {
         return model(with_input(value("x", {-1, 3})));
       },
       "input 'x' has shape ?x3, but --shape gives it 1x4; dimension 1 does not fit",
       {.shapes = {{"x", {1, 4}}}, .max_file_bytes = 1 << 20}},
      {"ShapeWithZero",
       [] {
         return model(with_input(value("x", {-1, 3})));
       },
       "input 'x' has shape ?x3, but --shape gives it 0x3; dimensions must be at least 1",
       {.shapes = {{"x", {0, 3}}}, .max_file_bytes = 1 << 20}},
      {"NegativeBatch",
       [] {
         return model(with_input(value("x", {-1, 3})));
       },
       "--batch gives -2, expected at least 1",
       {.batch = -2, .max_file_bytes = 1 << 20}},
      {"FileTooLarge", [] { return model(relu()); }, "has 70 B, the limit is 16 B", {.max_file_bytes = 16}},
  };
  return list;
}

class ModelErrors : public testing::TestWithParam<size_t> {};

TEST_P(ModelErrors, NameTheFileThePlaceAndTheReason) {
  const auto& bad = bad_models()[GetParam()];
  TestFolder folder;
  const auto path = folder.write("model.onnx", bad.file());
  folder.write("w.bin", std::string(16, '\0'));
  ::mkdir(folder.path("folder").c_str(), 0755);
  ASSERT_EQ(::symlink("/etc/passwd", folder.path("link.bin").c_str()), 0);
  const auto model = Model::load(path, bad.options);
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.error().to_string(), path + ": " + bad.message);
  EXPECT_NE(model.error().code(), Code::kInternal);
}

INSTANTIATE_TEST_SUITE_P(Golden, ModelErrors, testing::Range<size_t>(0, bad_models().size()),
                         [](const auto& param) { return std::string(bad_models()[param.param].name); });

TEST(ModelFiles, ThatAreMissingFoldersOrOfUnknownKindAreNamed) {
  TestFolder folder;
  const auto text = [](const std::string& path) { return Model::load(path).error().to_string(); };
  EXPECT_EQ(text(folder.path("none.onnx")), folder.path("none.onnx") + ": there is no such file");
  EXPECT_EQ(text(folder.path(".")), folder.path(".") + ": is not a regular file");
  EXPECT_EQ(text(folder.write("m.weights", "x")), folder.path("m.weights") +
                                                      ": the extension '.weights' is not known; expected "
                                                      ".onnx, .xml (OpenVINO), .pdmodel, .pb or .tflite");
  EXPECT_FALSE(
      Model::load(folder.write("m.xml", "<?xml version=\"1.0\"?><net><layers><layer/></layers></net>")).ok());
  EXPECT_FALSE(Model::load(folder.write("n.xml", "<net")).ok());
}

// A small file with a constant of enormous size is rejected, without computing or allocating the constant.
TEST(ModelFiles, WhoseConstantsExplodeAreRefusedOrLeftUncomputed) {
  TestFolder folder;
  std::vector<std::string> nodes;
  for (int i = 0; i < 60; ++i) {
    const std::string in = i == 0 ? "w" : "t" + std::to_string(i - 1);
    nodes.push_back(node("Concat", {in, in}, {"t" + std::to_string(i)}, "", {attribute_int("axis", 0)}));
  }
  nodes.push_back(node("ReduceSum", {"t59"}, {"s"}, "", {attribute_int("keepdims", 0)}));
  nodes.push_back(node("Add", {"x", "s"}, {"y"}));
  const auto path = folder.write("m.onnx", model({nodes,
                                                  {value("x", {2})},
                                                  {value("y", {2})},
                                                  {float_tensor("w", {1024}, std::vector<float>(1024, 1))}}));
  (void)Model::load(path);
}

TEST(ModelFiles, WithFlippedOrMissingBytesNeverCrash) {
  TestFolder folder;
  const auto body = graph({{node("Relu", {"y1"}, {"o"})}, {}, {value("o", {1, 2, 4, 4})}, {}});
  const std::string good =
      model({{node("Conv", {"x", "w", "b"}, {"y1"}, "conv",
                   {attribute_ints("pads", {1, 1, 1, 1}), attribute_ints("kernel_shape", {3, 3})}),
              node("If", {"c"}, {"y2"}, "if",
                   {attribute_graph("then_branch", body), attribute_graph("else_branch", body)}),
              node("Reshape", {"y2", "shape"}, {"y3"}, "reshape"), node("Gemm", {"y3", "g"}, {"y"}, "gemm")},
             {value("x", {1, 1, 4, 4}), value("c", {}, kBool)},
             {value("y", {1, 3})},
             {float_tensor("w", {2, 1, 3, 3}, std::vector<float>(18, 0.5F)), float_tensor("b", {2}, {1, 2}),
              int_tensor("shape", {2}, {1, 32}), float_tensor("g", {32, 3}, std::vector<float>(96, 0.25F))}});
  const auto loaded = Model::load(folder.write("good.onnx", good));
  ASSERT_TRUE(loaded.ok()) << loaded.error().to_string();
  Random random(7);
  for (int i = 0; i < 300; ++i) {
    std::string bad = good;
    if (random.chance(0.3)) bad.resize(random.below(bad.size()));
    for (uint64_t flips = 1 + random.below(3); flips > 0 && !bad.empty(); --flips)
      bad[random.below(bad.size())] ^= static_cast<char>(1U << random.below(8));
    (void)Model::load(folder.write("bad.onnx", bad));
  }
}

}  // namespace
}  // namespace heddle
