// CompiledPlan.session(): requests that carry state from one to the next.
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "errors.h"
#include "heddle/base/spelling.h"
#include "objects.h"

namespace heddle::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

struct PySession {
  std::shared_ptr<PyCompiled> compiled;
  std::vector<ModelState> states;
  std::vector<TensorValue> values;  // [state] for the next request
  bool running = false;

  const Graph& graph() const { return *compiled->plan->problem().graph; }
};

const Tensor& tensor_of(const Graph& graph, const std::string& name) {
  for (const TensorId id : graph.inputs())
    if (graph.tensor(id).name == name) return graph.tensor(id);
  raise(internal_error("the plan has no input " + quote_text(name)));
}

void reset(PySession& session) {
  session.values.clear();
  for (const ModelState& s : session.states) {
    const Tensor& tensor = tensor_of(session.graph(), s.input);
    auto value = value_or_raise(make_tensor(tensor.dtype, tensor.shape));
    std::memset(value.data.get(), 0, static_cast<size_t>(value.bytes));
    if (!s.initial.empty()) std::memcpy(value.data.get(), s.initial.data(), s.initial.size());
    session.values.push_back(std::move(value));
  }
}

std::shared_ptr<PySession> open_session(const std::shared_ptr<PyCompiled>& compiled,
                                        const std::map<std::string, std::string>& state) {
  if (compiled->model == nullptr)
    raise(unsupported("the plan has no model file, so there is no state to carry"));
  const std::vector<std::pair<std::string, std::string>> pairs(state.begin(), state.end());
  auto session = std::make_shared<PySession>();
  session->compiled = compiled;
  session->states = value_or_raise(states_with(*compiled->model, pairs));
  if (session->states.empty())
    raise(
        invalid_input("the model has no variables; name an input and the output that it takes from the "
                      "request before, as in state={\"h\": \"hn\"}"));
  reset(*session);
  return session;
}

bool is_state(const PySession& session, const std::string& input) {
  return std::ranges::find(session.states, input, &ModelState::input) != session.states.end();
}

// The request's inputs and those that the session keeps.
nb::dict with_state(const PySession& session, const nb::object& inputs) {
  nb::dict all;
  if (nb::isinstance<nb::dict>(inputs)) {
    for (const auto& [key, value] : nb::borrow<nb::dict>(inputs)) {
      const auto name = utf8_of(key);
      if (is_state(session, name))
        raise(invalid_input("the input " + quote_text(name) + " is kept by the session; do not give it"));
      all[key] = value;
    }
  } else {
    std::vector<std::string> others;
    for (const TensorId id : session.graph().inputs())
      if (const auto& name = session.graph().tensor(id).name; !is_state(session, name))
        others.push_back(name);
    if (others.size() != 1)
      raise(invalid_input("beside its state the model has " + counted(others.size(), "input") +
                          "; give a dictionary with each"));
    all[others[0].c_str()] = inputs;
  }
  for (size_t k = 0; k < session.states.size(); ++k)
    all[session.states[k].input.c_str()] = to_array(session.values[k]);
  return all;
}

// A copy: the caller may write to the outputs.
TensorValue copy_of(const TensorValue& value) {
  auto copy = value_or_raise(make_tensor(value.dtype, value.shape));
  std::memcpy(copy.data.get(), value.data.get(), static_cast<size_t>(value.bytes));
  return copy;
}

std::shared_ptr<PyRun> run_in(PySession& session, const nb::object& inputs) {
  if (session.running) raise(invalid_input("another request of this session runs; they run one by one"));
  session.running = true;
  struct Ended {
    bool& running;
    ~Ended() { running = false; }
  } const ended{session.running};
  auto run = run_request(*session.compiled, with_state(session, inputs));
  const Graph& graph = session.graph();
  // Emulated devices compute nothing, so there are no outputs.
  for (size_t k = 0; k < session.states.size(); ++k)
    for (size_t i = 0; i < run->outputs.size(); ++i)
      if (graph.tensor(graph.outputs()[i]).name == session.states[k].output)
        session.values[k] = copy_of(run->outputs[i]);
  return run;
}

}  // namespace

void bind_sessions(nb::module_& module) {
  nb::class_<PySession>(module, "Session",
                        "Requests that depend on each other: outputs of one are inputs of the next. Made by "
                        "CompiledPlan.session(). Requests of one session run one by one; a request that "
                        "fails leaves the state as it was.")
      .def("run", &run_in, "inputs"_a,
           nb::sig("def run(self, inputs: collections.abc.Mapping[str, typing.Any] | typing.Any) -> Run"),
           "As CompiledPlan.run(), without the inputs that the session keeps.")
      .def("reset", &reset, "Begins anew, with the state before the first request.")
      .def_prop_ro(
          "state",
          [](const PySession& s) {
            nb::dict state;
            for (size_t k = 0; k < s.states.size(); ++k)
              state[s.states[k].input.c_str()] = to_array(copy_of(s.values[k]));
            return state;
          },
          nb::sig("def state(self) -> dict[str, typing.Any]"),
          "The values that the next request gets, by the inputs' names.");
  auto compiled = nb::borrow<nb::class_<PyCompiled>>(module.attr("CompiledPlan"));
  compiled.def("session", &open_session, nb::kw_only(), "state"_a = std::map<std::string, std::string>(),
               nb::sig("def session(self, *, state: collections.abc.Mapping[str, str] = {}) -> Session"),
               "Opens a session. `state` names inputs, each with the output that it takes from the request "
               "before; it is zeros at first. Variables of OpenVINO's files are state without being named. "
               "InvalidInputError if a pair differs in type or shape.");
}

}  // namespace heddle::python
