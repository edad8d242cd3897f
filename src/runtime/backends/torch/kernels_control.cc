// Branches and loops; their bodies are separate programs.
#include <algorithm>
#include <memory>
#include <optional>

#include "torch_program.h"

namespace heddle::torch_backend {
namespace {

struct Body {
  std::shared_ptr<const TorchProgram> program;
  std::vector<BodyInput> inputs;
  std::vector<BodyOutput> outputs;
  std::vector<ValueType> parameters;
  int number_parameter = -1, condition_result = -1;

  Tensors run(Tensors values) const {
    auto results = program->compute(std::move(values));
    TORCH_CHECK(results.ok(), results.error().to_string());
    return std::move(results).value();
  }
};

Result<Body> body_of(const OpSite& site, const OpBody& given) {
  if (!site.device.is_cpu())
    return site.refuse("what it runs next depends on numbers that only the device has");
  HEDDLE_ASSIGN_OR_RETURN(auto program, TorchProgram::make(*given.ops, site.device));
  for (const BodyOutput& output : given.outputs) {
    const Shape& made = given.ops->output_types[static_cast<size_t>(output.result)].shape;
    if (!output.joined && made != site.out(static_cast<size_t>(output.output)))
      return site.refuse("a body makes " + shape_text(made) + " where the graph says " +
                         shape_text(site.out(static_cast<size_t>(output.output))));
  }
  return Body{std::move(program),     given.inputs,           given.outputs,
              given.ops->input_types, given.number_parameter, given.condition_result};
}

Result<Kernel> make_if(const OpSite& site) {
  if (site.node.bodies.size() != 2) return site.refuse("it has no two branches");
  HEDDLE_ASSIGN_OR_RETURN(const Body yes, body_of(site, site.node.bodies[0]));
  HEDDLE_ASSIGN_OR_RETURN(const Body no, body_of(site, site.node.bodies[1]));
  return Kernel([yes, no, count = site.node.outputs.size()](Operands in) {
    const Body& body = in[0].reshape({}).item<bool>() ? yes : no;
    Tensors values(body.parameters.size()), out(count);
    for (const BodyInput& i : body.inputs)
      values[static_cast<size_t>(i.parameter)] = in[static_cast<size_t>(i.input)];
    const Tensors results = body.run(std::move(values));
    for (const BodyOutput& o : body.outputs)
      out[static_cast<size_t>(o.output)] = results[static_cast<size_t>(o.result)];
    return out;
  });
}

int64_t from_start(int64_t place, int64_t size) { return place < 0 ? place + size : place; }

// Number of slices between the first and the last element.
Result<int64_t> slices_of(const OpSite& site, const BodyInput& i) {
  const auto input = static_cast<size_t>(i.input);
  const int64_t axis = normal_axis(i.axis, site.rank(input));
  if (axis < 0 || i.part < 1 || std::abs(i.stride) != i.part) return site.refuse("how it slices its inputs");
  const int64_t size = site.in(input)[static_cast<size_t>(axis)];
  const int64_t first = from_start(i.start, size), last = from_start(i.end, size);
  return size == 0 ? 0 : (std::abs(last - first) + 1) / i.part;
}

at::Tensor slice_at(const BodyInput& i, const at::Tensor& x, int64_t iteration) {
  const int64_t first = from_start(i.start, x.size(i.axis)) + iteration * i.stride;
  return x.narrow(i.axis, i.stride < 0 ? first - i.part + 1 : first, i.part);
}

struct Loop {
  Body body;
  std::optional<int64_t> count;                        // number of iterations, if known
  std::optional<size_t> count_input, condition_input;  // of Loop: maximum count; whether it runs at all
  size_t outputs = 0;

  bool goes_on(Operands in, const Tensors& results, int64_t done) const {
    if (count) return done < *count;
    if (count_input) {
      const auto most = in[*count_input].reshape({}).item<int64_t>();
      if (most >= 0 && done >= most) return false;
    }
    if (done == 0) return !condition_input || in[*condition_input].reshape({}).item<bool>();
    return body.condition_result < 0 ||
           results[static_cast<size_t>(body.condition_result)].reshape({}).item<bool>();
  }

  Tensors operator()(Operands in) const {
    Tensors results, out(outputs), fed;
    std::vector<Tensors> parts(outputs);
    for (const BodyInput& i : body.inputs) fed.push_back(in[static_cast<size_t>(i.input)]);
    // Without any iteration, outputs are the values that the first one would have been fed.
    for (const BodyOutput& o : body.outputs)
      for (const BodyInput& i : body.inputs)
        if (i.fed_back == o.result) out[static_cast<size_t>(o.output)] = in[static_cast<size_t>(i.input)];
    for (int64_t done = 0; goes_on(in, results, done); ++done) {
      Tensors values(body.parameters.size());
      for (size_t k = 0; k < body.inputs.size(); ++k) {
        const BodyInput& i = body.inputs[k];
        values[static_cast<size_t>(i.parameter)] = i.sliced ? slice_at(i, fed[k], done) : fed[k];
      }
      if (body.number_parameter >= 0) {
        const auto n = static_cast<size_t>(body.number_parameter);
        values[n] = at::full(body.parameters[n].shape, done, at::kLong).to(carrier(body.parameters[n].dtype));
      }
      results = body.run(std::move(values));
      for (size_t k = 0; k < fed.size(); ++k)
        if (body.inputs[k].fed_back >= 0) fed[k] = results[static_cast<size_t>(body.inputs[k].fed_back)];
      for (const BodyOutput& o : body.outputs) {
        const at::Tensor& result = results[static_cast<size_t>(o.result)];
        if (o.joined)
          parts[static_cast<size_t>(o.output)].push_back(result);
        else
          out[static_cast<size_t>(o.output)] = result;
      }
    }
    for (const BodyOutput& o : body.outputs) {
      Tensors& list = parts[static_cast<size_t>(o.output)];
      if (!o.joined) continue;
      if (o.stride < 0) std::reverse(list.begin(), list.end());
      out[static_cast<size_t>(o.output)] = at::cat(list, o.axis);
    }
    return out;
  }
};

// Joined outputs need a known count of at least one, others a known count or a fed-back value.
Status check_outputs(const OpSite& site, const Loop& loop) {
  for (const BodyOutput& o : loop.body.outputs) {
    if (o.joined && (!loop.count || *loop.count < 1)) return site.refuse("how often it loops is not known");
    if (o.joined) continue;
    const auto feeds = [&](const BodyInput& i) { return i.fed_back == o.result; };
    if (!loop.count && std::none_of(loop.body.inputs.begin(), loop.body.inputs.end(), feeds))
      return site.refuse("an output that no iteration may make");
  }
  return {};
}

Result<Loop> sliced_loop(const OpSite& site) {
  if (site.node.bodies.size() != 1) return site.refuse("it has no body");
  HEDDLE_ASSIGN_OR_RETURN(Body body, body_of(site, site.node.bodies[0]));
  Loop loop{.body = std::move(body), .outputs = site.node.outputs.size()};
  for (const BodyInput& i : loop.body.inputs) {
    if (!i.sliced) continue;
    HEDDLE_ASSIGN_OR_RETURN(const int64_t count, slices_of(site, i));
    if (loop.count && *loop.count != count) return site.refuse("its inputs have unequal numbers of slices");
    loop.count = count;
  }
  return loop;
}

Result<Kernel> make_tensor_iterator(const OpSite& site) {
  HEDDLE_ASSIGN_OR_RETURN(const Loop loop, sliced_loop(site));
  if (!loop.count || *loop.count < 1) return site.refuse("how often it loops is not known");
  HEDDLE_RETURN_IF_ERROR(check_outputs(site, loop));
  return Kernel(loop);
}

// The body's condition, if it is the same in every iteration.
std::optional<bool> constant_condition(const OpBody& body) {
  if (body.condition_result < 0) return true;
  const int value = body.ops->outputs[static_cast<size_t>(body.condition_result)];
  for (const SegmentConstant& c : body.ops->constants)
    if (c.value == value && c.view.bytes == 1) return *c.view.data != std::byte{0};
  return std::nullopt;
}

// Inputs: maximum count (negative: unlimited), whether to start, then the body's.
Result<Kernel> make_loop(const OpSite& site) {
  HEDDLE_ASSIGN_OR_RETURN(Loop loop, sliced_loop(site));
  const auto most = site.integers(0), starts = site.integers(1);
  const auto goes_on = constant_condition(site.node.bodies[0]);
  const bool known = most.ok() && most->size() == 1 && (*most)[0] >= 0 && starts.ok() && starts->size() == 1;
  if (known && (*starts)[0] == 0) {
    loop.count = 0;
  } else if (known && goes_on) {
    loop.count = *goes_on ? (*most)[0] : std::min<int64_t>((*most)[0], 1);
  } else {
    loop.count.reset();
    loop.count_input = 0;
    loop.condition_input = 1;
    for (const BodyInput& i : loop.body.inputs)
      if (i.sliced) return site.refuse("how often it loops is not known");
  }
  HEDDLE_RETURN_IF_ERROR(check_outputs(site, loop));
  return Kernel(loop);
}

constexpr KernelEntry kControlKernels[] = {
    {"If", 8, 8, make_if},
    {"Loop", 5, 5, make_loop},
    {"TensorIterator", 1, 1, make_tensor_iterator},
};

}  // namespace

std::span<const KernelEntry> control_kernels() { return kControlKernels; }

}  // namespace heddle::torch_backend
