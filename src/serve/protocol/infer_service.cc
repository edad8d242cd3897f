#include "heddle/serve/infer_service.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <span>
#include <utility>

#include "heddle/base/spelling.h"
#include "heddle/base/units.h"
#include "heddle/runtime/tensor.h"
#include "infer_check.h"
#include "memory_budget.h"
#include "plane/fault.h"
#include "request_sizes.h"
#include "sessions.h"

namespace heddle {
namespace {

// As many as a plane has by default.
constexpr size_t kMostHeld = LivePlaneOptions().max_queued;

// Triton's rule: what a request does not say, or says beyond the model's levels, is the model's default.
uint16_t priority_of(const ServedModel& m, int64_t asked) {
  const int levels = m.priority_levels > 0 ? m.priority_levels : kLastPriority;
  if (asked >= 1 && asked <= levels) return static_cast<uint16_t>(asked);
  return static_cast<uint16_t>(m.default_priority > 0 ? m.default_priority : kLastPriority);
}

// An empty version is any.
Status check_version(const ServedModel& model, const std::string& version) {
  if (version.empty() || version == model.version) return {};
  return not_found("model '" + model.name + "' has no version '" + version.substr(0, 64) + "'; version " +
                   model.version + " is served");
}

}  // namespace

struct InferService::Row final : TensorRow {
  Call* call = nullptr;
  void settled() override;
};

// A request on its way: its rows are scheduled one by one, the last that is settled answers. Owns itself.
struct InferService::Call {
  Call(std::shared_ptr<const ServedModel> of, std::shared_ptr<MemoryBudget> budget)
      : model(std::move(of)), sizes(*model), memory(std::move(budget)) {}

  const std::shared_ptr<const ServedModel> model;
  RequestSizes sizes;
  MemoryCharge memory;  // of `padded` and `outputs`
  std::shared_ptr<Record> record;
  InferRequest request;
  Done done;
  std::vector<size_t> wanted;         // then the true shapes of those whose size depends on data
  size_t shown = 0;                   // of `wanted`, that the client asked for
  std::vector<TensorValue> padded;    // [input], of a request that is padded
  std::unique_ptr<SessionTurn> turn;  // null: of a model without state
  std::vector<InferTensor> state;     // inputs that the session keeps
  std::vector<std::shared_ptr<std::byte[]>> outputs;  // [wanted]
  std::vector<Row> rows;
  std::atomic<size_t> open{0};
  TimeNs slo = 0;

  void finish();
  // The turn in the session ends before the client knows, who may send the next request at once.
  void answer(Result<InferResponse> result);
  void fill_trace() const;
  void fill_state(CheckedRequest& checked, const SessionTurn& in);
  void keep_state();
  // Copies what workers gave for the rows to the outputs; false: its size is not that of the model's outputs.
  bool take_results();
  // Makes the outputs, and the padded inputs where the bucket is larger, if the requests in flight leave room.
  Status make_tensors(const CheckedRequest& checked, const MemoryBudget& budget);
  void count_padding(ModelStatisticsRecord& s) const;
  // Cuts wanted[k], whose size depends on data, to its true shape.
  Status cut_to_shape(size_t k, InferTensor& tensor) const;
};

void InferService::Row::settled() {
  Call* const c = call;
  if (c->open.fetch_sub(1) != 1) return;
  const std::unique_ptr<Call> owner(c);
  c->finish();
}

bool InferService::Call::take_results() {
  size_t all = 0;
  for (const auto& t : model->outputs) all += static_cast<size_t>(t.row_bytes);
  for (const auto& row : rows) {
    if (row.result.bytes != all) return false;
    const std::byte* from = row.result.data;
    for (size_t o = 0; o < model->outputs.size(); ++o) {
      const auto bytes = static_cast<size_t>(model->outputs[o].row_bytes);
      if (row.outputs[o] != nullptr) std::memcpy(row.outputs[o], from, bytes);
      from += bytes;
    }
  }
  return true;
}

Status InferService::Call::make_tensors(const CheckedRequest& checked, const MemoryBudget& budget) {
  const size_t to_pad = sizes.pads() ? checked.inputs.size() : 0;
  int64_t bytes = 0;
  for (size_t i = 0; i < to_pad; ++i) bytes += sizes.run_input_bytes(i) * checked.rows;
  for (const size_t o : wanted) bytes += sizes.run_output_bytes(o) * checked.rows;
  if (!memory.take(static_cast<size_t>(bytes))) {
    if (static_cast<size_t>(bytes) > budget.most())
      return invalid_input("the request's outputs and padded inputs take " + format_bytes(bytes) +
                           ", more than those of all requests may (--max-memory)");
    return cancelled_error(
        "the tensors of the requests in flight use all the memory permitted for them; try again later");
  }
  for (size_t i = 0; i < to_pad; ++i) {
    HEDDLE_ASSIGN_OR_RETURN(auto tensor, sizes.pad(i, *checked.inputs[i], checked.rows));
    padded.push_back(std::move(tensor));
  }
  if (fault_at(FaultPoint::kOutputs)) throw std::bad_alloc();
  for (const size_t o : wanted) {
    const int64_t output = sizes.run_output_bytes(o) * checked.rows;
    outputs.emplace_back(new std::byte[static_cast<size_t>(std::max<int64_t>(output, 8))]);
  }
  return {};
}

void InferService::Call::answer(Result<InferResponse> result) {
  turn.reset();
  done(std::move(result));
}

void InferService::Call::fill_state(CheckedRequest& checked, const SessionTurn& in) {
  const auto& tensors = model->state->tensors;
  const auto before = in.before();
  state.reserve(tensors.size());
  for (size_t k = 0; k < tensors.size(); ++k) {
    const auto& info = model->inputs[tensors[k].input];
    InferTensor t{info.name, info.dtype, info.row, before[k].get(), tensors[k].row_bytes * checked.rows,
                  before[k]};
    if (model->batched) t.shape.insert(t.shape.begin(), checked.rows);
    state.push_back(std::move(t));
    checked.inputs[tensors[k].input] = &state.back();
  }
  for (const auto& t : tensors)
    if (std::ranges::find(wanted, t.output) == wanted.end()) wanted.push_back(t.output);
}

void InferService::Call::keep_state() {
  StateTensors after;
  for (const auto& t : model->state->tensors)
    after.push_back(outputs[static_cast<size_t>(std::ranges::find(wanted, t.output) - wanted.begin())]);
  turn->keep(std::move(after));
}

void InferService::Call::count_padding(ModelStatisticsRecord& s) const {
  if (!model->varying) return;
  for (size_t i = 0; i < model->inputs.size(); ++i) {
    if (model->inputs[i].state) continue;  // no client sends it, and it is never padded
    s.input_bytes += static_cast<uint64_t>(sizes.input_bytes(i)) * rows.size();
    s.run_bytes += static_cast<uint64_t>(sizes.run_input_bytes(i)) * rows.size();
  }
  ++s.buckets[model->varying->buckets[sizes.bucket()].name];
}

Status InferService::Call::cut_to_shape(size_t k, InferTensor& tensor) const {
  const auto& info = model->outputs[wanted[k]];
  const auto place = std::ranges::find(wanted, static_cast<size_t>(info.true_shape)) - wanted.begin();
  const auto& shape = model->outputs[wanted[static_cast<size_t>(place)]];
  std::byte* const values = outputs[static_cast<size_t>(place)].get();
  HEDDLE_ASSIGN_OR_RETURN(TensorValue cut,
                          front_corner({info.dtype, sizes.run_output(wanted[k]), outputs[k].get(),
                                        sizes.run_output_bytes(wanted[k])},
                                       shape_values({shape.dtype, shape.row, values, shape.row_bytes})));
  tensor.shape = cut.shape;
  tensor.data = cut.data.get();
  tensor.bytes = cut.bytes;
  tensor.owner = std::shared_ptr<const void>(cut.data, cut.data.get());
  return {};
}

void InferService::Call::fill_trace() const {
  auto& record = request.trace->record;
  record.version = model->version;
  record.slo_us = us_from_ns(slo);
  record.batch = rows[0].batch;
  for (const auto& r : rows)
    record.rows.push_back({r.arrived, r.begun, r.finished, r.outcome, r.steps ? *r.steps : PlaneSteps()});
}

void InferService::Call::finish() {
  // The worst of its rows is the request's outcome; Outcome is in the order of badness.
  Row* worst = rows.data();
  TimeNs begun = 0, finished = 0;
  for (auto& r : rows) {
    if (r.outcome > worst->outcome) worst = &r;
    begun = std::max(begun, r.begun);
    finished = std::max(finished, r.finished);
  }
  const TimeNs arrived = rows[0].arrived;
  if (request.trace) fill_trace();
  InferTiming timing;
  timing.total = us_from_ns(finished - arrived);
  timing.queue = us_from_ns(std::max<TimeNs>(0, begun - arrived));
  timing.compute = begun > 0 ? us_from_ns(finished - begun) : 0;
  const Outcome outcome = worst->outcome;
  const bool answered = outcome == Outcome::kInTime || outcome == Outcome::kLate;
  {
    const std::lock_guard lock(record->mutex);
    auto& s = record->record;
    ++s.requests[static_cast<size_t>(outcome)];
    s.last_ms = wall_ns() / 1'000'000;
    if (answered) {
      s.success.add(timing.total);
      s.queue.add(timing.queue);
      s.compute.add(timing.compute);
      s.rows += rows.size();
      count_padding(s);
      s.batches[rows[0].batch].add(timing.compute);
      size_t bucket = 0;
      const double seconds = timing.total * 1e-6;
      while (bucket < std::size(ModelStatisticsRecord::kBuckets_s) &&
             seconds > ModelStatisticsRecord::kBuckets_s[bucket])
        ++bucket;
      ++s.latency[bucket];
      s.latency_s += seconds;
    } else {
      s.fail.add(timing.total);
    }
  }
  if (!answered) {
    if (outcome == Outcome::kDropped)
      return answer(infeasible("model '" + model->name + "': the deadline of " +
                               std::to_string(static_cast<int64_t>(us_from_ns(slo))) +
                               " us after arrival cannot be met; the request was dropped"));
    return answer(Error(outcome == Outcome::kWithdrawn || worst->again ? Code::kCancelled : Code::kInternal,
                        "model '" + model->name + "': " + worst->error));
  }
  if (model->remote && !take_results())
    return answer(internal_error("model '" + model->name +
                                 "': the worker's outputs have another size than the model's"));
  InferResponse response;
  response.model = model->name;
  response.version = model->version;
  response.id = std::move(request.id);
  response.timing = timing;
  response.batch = rows[0].batch;
  response.slo_us = us_from_ns(slo);
  response.binary_default = request.binary_outputs;
  response.requested = std::move(request.outputs);
  for (size_t k = 0; k < shown; ++k) {
    const auto& info = model->outputs[wanted[k]];
    if (model->any_payload) {
      const uint64_t value = info.name == kDigestOutput ? rows[0].digest : rows[0].batch;
      std::memcpy(outputs[k].get(), &value, sizeof value);
    }
    InferTensor t;
    t.name = info.name;
    t.dtype = info.dtype;
    t.shape = sizes.run_output(wanted[k]);
    if (model->batched) t.shape.insert(t.shape.begin(), static_cast<int64_t>(rows.size()));
    t.data = outputs[k].get();
    t.bytes = sizes.run_output_bytes(wanted[k]) * static_cast<int64_t>(rows.size());
    t.owner = std::shared_ptr<const void>(outputs[k], outputs[k].get());
    if (info.true_shape >= 0) {
      if (auto cut = cut_to_shape(k, t); !cut.ok()) return answer(std::move(cut).error());
    } else if (sizes.is_cut(wanted[k])) {
      if (auto cut = sizes.cut(wanted[k], static_cast<int64_t>(rows.size()), t); !cut.ok())
        return answer(std::move(cut).error());
    }
    response.outputs.push_back(std::move(t));
  }
  if (turn) keep_state();
  answer(std::move(response));
}

InferService::InferService()
    : memory_(std::make_shared<MemoryBudget>()),
      sessions_(new Sessions([this](WaitingRequest waiting, Result<std::unique_ptr<SessionTurn>> turn) {
        if (turn.ok()) return begin_in_turn(std::move(waiting), std::move(*turn));
        count(waiting.request.model,
              turn.error().code() == Code::kInfeasible ? Outcome::kDropped : Outcome::kWithdrawn);
        waiting.done(std::move(turn).error());
      })) {}

InferService::~InferService() { stop(0); }

// An exception fails the request and leaves its session as it was.
void InferService::begin_in_turn(WaitingRequest waiting, std::unique_ptr<SessionTurn> turn, bool was_held) {
  try {
    begin(waiting, std::move(turn), was_held);
  } catch (const std::exception& e) {
    if (!waiting.done) return;  // its call answers
    count(waiting.request.model, Outcome::kFailed);
    waiting.done(internal_error(e.what()));
  }
}

void InferService::set_max_memory(size_t bytes) { memory_->set_most(bytes); }

void InferService::set_session_limits(const SessionLimits& limits) { sessions_->set_limits(limits); }

std::map<std::string, SessionCounters> InferService::sessions() const { return sessions_->counters(); }

void InferService::count_unreadable(const std::string& model) const {
  {
    const std::shared_lock lock(gate_);
    if (!index_.contains(model)) return;
  }
  count(model, Outcome::kInvalid);
}

void InferService::count(const std::string& model, Outcome outcome) const {
  const auto record = record_of(model);
  const std::lock_guard lock(record->mutex);
  ++record->record.requests[static_cast<size_t>(outcome)];
}

std::shared_ptr<InferService::Record> InferService::record_of(const std::string& model) const {
  const std::lock_guard lock(records_mutex_);
  auto& record = records_[model];
  if (!record) record = std::make_shared<Record>();
  return record;
}

Error InferService::no_model(const std::string& name) const {
  std::vector<std::string> names;
  for (const auto& [n, i] : index_) names.push_back(n);
  const auto shown = name.substr(0, 128);
  return not_found("no model is named '" + shown + "'" + did_you_mean(shown, names) +
                   (names.empty() ? "; none is loaded" : "; there are " + join_names(names, 40)));
}

Result<std::shared_ptr<const ServedModel>> InferService::model(const std::string& name,
                                                               const std::string& version) const {
  const std::shared_lock lock(gate_);
  const auto it = index_.find(name);
  if (it == index_.end()) return no_model(name);
  const auto& model = current_->models[it->second];
  HEDDLE_RETURN_IF_ERROR(check_version(*model, version));
  return model;
}

std::vector<std::shared_ptr<const ServedModel>> InferService::models() const {
  const std::shared_lock lock(gate_);
  return current_ ? current_->models : std::vector<std::shared_ptr<const ServedModel>>();
}

std::vector<InferService::Repository::Entry> InferService::index() const {
  if (repository_.index) return repository_.index();
  std::vector<Repository::Entry> entries;
  for (const auto& m : models()) entries.push_back({m->name, m->version, "READY", ""});
  return entries;
}

bool InferService::ready() const {
  const std::shared_lock lock(gate_);
  return !stopping_ && current_ && current_->plane;
}

void InferService::infer(InferRequest request, Done done) {
  if (request.trace) {
    constexpr size_t kMostTraced = 256;
    request.trace->record.model = request.model.substr(0, kMostTraced);
    request.trace->record.id = request.id.substr(0, kMostTraced);
    done = [trace = request.trace, done = std::move(done)](Result<InferResponse> result) {
      if (!result.ok()) trace->record.error = result.error().to_string();
      done(std::move(result));
    };
  }
  begin_in_turn({std::move(request), std::move(done), live_now()}, nullptr);
}

void InferService::begin(WaitingRequest& came, std::unique_ptr<SessionTurn> turn, bool was_held) {
  const std::shared_lock lock(gate_);
  const auto end = [&came, &turn](Error error) {
    turn.reset();
    came.done(std::move(error));
  };
  if (stopping_) return end(cancelled_error("the server is stopping"));
  if (holding_ && !was_held) {
    const std::lock_guard held(held_mutex_);
    if (holding_) {
      if (held_.size() >= kMostHeld)
        return end(cancelled_error("too many requests wait for a change of plan; try again later"));
      held_.emplace_back(std::move(came), std::move(turn));
      return;
    }
  }
  const auto it = index_.find(came.request.model);
  if (it == index_.end()) return end(no_model(came.request.model));
  const auto model = current_->models[it->second];
  const auto refuse = [&](Error error) {
    count(model->name, Outcome::kInvalid);
    end(std::move(error));
  };
  if (auto version = check_version(*model, came.request.version); !version.ok())
    return refuse(std::move(version).error());
  if (turn && turn->of() != model->state)
    return refuse(cancelled_error("the model was loaded again, which ends its sessions"));
  auto checked = check_request(*model, came.request);
  if (!checked.ok()) return refuse(std::move(checked).error());
  if (model->state && !turn) {
    came.rows = checked->rows;
    auto entered = sessions_->enter(*model, came);
    if (!entered.ok()) return refuse(std::move(entered).error());
    if (*entered == nullptr) return;  // it waits for its turn
    turn = std::move(*entered);
  }
  auto call = std::make_unique<Call>(model, memory_);
  call->wanted = std::move(checked->outputs);
  call->shown = call->wanted.size();
  call->wanted.insert(call->wanted.end(), checked->shapes.begin(), checked->shapes.end());
  if (turn) call->fill_state(*checked, *turn);
  if (model->varying) {
    auto sizes = RequestSizes::of_varying(*model, std::move(checked->input_shapes));
    if (!sizes.ok()) return refuse(std::move(sizes).error());
    call->sizes = std::move(*sizes);
  }
  if (fault_at(FaultPoint::kAdmit)) return refuse(fault_error());
  const auto& sizes = call->sizes;
  call->record = record_of(model->name);
  const auto rows = static_cast<size_t>(checked->rows);
  if (auto made = call->make_tensors(*checked, *memory_); !made.ok()) return refuse(std::move(made).error());
  const double slo_us =
      came.request.timeout_us > 0 ? static_cast<double>(came.request.timeout_us) : model->slo_us;
  call->slo = ns_from_us(slo_us);
  call->rows.resize(rows);
  call->open = rows;
  for (size_t r = 0; r < rows; ++r) {
    Row& row = call->rows[r];
    row.call = call.get();
    row.model = places_[it->second] + sizes.bucket();
    row.arrived = came.arrived;
    row.deadline = came.arrived + call->slo;
    row.priority = priority_of(*model, came.request.priority);
    if (came.request.trace) row.steps = std::make_shared<PlaneSteps>();
    for (size_t i = 0; i < checked->inputs.size(); ++i)
      row.inputs.push_back((call->padded.empty() ? checked->inputs[i]->data : call->padded[i].data.get()) +
                           r * static_cast<size_t>(sizes.run_input_bytes(i)));
    if (sizes.at_own()) {
      row.input_shapes = &sizes.own_inputs();
      row.output_shapes = &sizes.own_outputs();
    }
    if (model->any_payload || model->remote)
      for (size_t i = 0; i < checked->inputs.size(); ++i) {
        const InferTensor& in = *checked->inputs[i];
        const auto bytes = static_cast<size_t>(model->remote ? model->inputs[i].row_bytes : in.bytes);
        row.payload.push_back({in.owner, row.inputs[i], bytes});
      }
    row.outputs.assign(model->outputs.size(), nullptr);
    for (size_t k = 0; k < call->wanted.size(); ++k) {
      const size_t o = call->wanted[k];
      row.outputs[o] = call->outputs[k].get() + r * static_cast<size_t>(sizes.run_output_bytes(o));
    }
  }
  // From here on the call answers. It may be gone with its last row.
  call->request = std::move(came.request);
  call->done = std::move(came.done);
  call->turn = std::move(turn);
  for (Row& row : std::span(call.release()->rows)) current_->plane->submit(row);
}

ModelStatisticsRecord InferService::statistics(const std::string& model) const {
  const auto record = record_of(model);
  const std::lock_guard lock(record->mutex);
  return record->record;
}

std::map<std::string, ModelStatisticsRecord> InferService::all_statistics() const {
  std::map<std::string, ModelStatisticsRecord> all;
  const std::lock_guard lock(records_mutex_);
  for (const auto& [name, record] : records_) {
    const std::lock_guard guard(record->mutex);
    all[name] = record->record;
  }
  return all;
}

}  // namespace heddle
