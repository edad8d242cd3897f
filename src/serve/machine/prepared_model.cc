#include "prepared_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "bucket_choice.h"
#include "heddle/base/spelling.h"
#include "heddle/base/units.h"
#include "smaller_check.h"
#include "split_check.h"

namespace heddle {
namespace {

class Preparation {
 public:
  Preparation(const ModelSource& source, const PrepareOptions& options)
      : source_(source), options_(options), varying_(source.settings.varying) {}

  Result<PreparedModel> prepare() {
    HEDDLE_ASSIGN_OR_RETURN(choice_, choose());
    if (is_varying() && varying_.padding_limit < 0) source_.settings.max_batch = 1;
    HEDDLE_RETURN_IF_ERROR(load());
    if (is_varying()) {
      HEDDLE_RETURN_IF_ERROR(decide_smaller());
    } else {
      HEDDLE_RETURN_IF_ERROR(compile_first());
      out_.served = std::make_shared<ServedModel>(out_.buckets.front().model->served);
    }
    HEDDLE_RETURN_IF_ERROR(measure());
    finish();
    return std::move(out_);
  }

 private:
  bool is_varying() const { return varying_.any(); }
  Device first_device() const { return options_.in_type(options_.targets.front()); }

  ModelSource at(const NamedShapes& shapes) const {
    ModelSource source = source_;
    for (const auto& [name, shape] : shapes) source.settings.shapes[name] = shape;
    return source;
  }

  Result<BucketedShapes> choose() {
    if (!is_varying()) return BucketedShapes{};
    HEDDLE_ASSIGN_OR_RETURN(auto choice, known_buckets(source_));
    // The error of narrower types and all times are measured without batches.
    const auto alone = [&](const NamedShapes& shapes) {
      auto source = at(shapes);
      source.settings.max_batch = 1;
      return load_local_model(source);
    };
    HEDDLE_ASSIGN_OR_RETURN(const auto largest, alone(choice.shapes.back()));
    HEDDLE_RETURN_IF_ERROR(options_.choose_type(*largest));
    if (choice.shapes.size() <= static_cast<size_t>(varying_.most_buckets) ||
        !varying_.buckets.shapes.empty())
      return choice;
    return choose_by_time(
        std::move(choice), varying_.most_buckets, [&](const NamedShapes& shapes) -> Result<double> {
          options_.report("measuring " + source_.name + " at " + shapes_text(shapes));
          HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<const LocalModel> model, alone(shapes));
          HEDDLE_ASSIGN_OR_RETURN(const auto runner, PlanRunner::create(model, first_device()));
          HEDDLE_ASSIGN_OR_RETURN(const auto us, runner->measure(options_.measure_s, options_.deadline));
          return us.front();
        });
  }

  // All buckets alike in what a batch is.
  Status load() {
    const size_t count = is_varying() ? choice_.shapes.size() : 1;
    out_.buckets.assign(count, {});
    first_.clear();
    int least_rows = source_.settings.max_batch;
    const auto names = bucket_model_names(source_.name, choice_.shapes);
    for (size_t b = 0; b < count; ++b) {
      auto source = is_varying() ? at(choice_.shapes[b]) : source_;
      if (is_varying()) source.settings.weight *= std::max(choice_.shares[b], kLeastShare);
      HEDDLE_ASSIGN_OR_RETURN(auto model, load_local_model(source));
      least_rows = std::min(least_rows, model->served.max_rows);
      if (is_varying()) model->served.name = names[b];
      out_.buckets[b].model = std::move(model);
    }
    for (auto& bucket : out_.buckets) {
      if (bucket.model->served.max_rows == least_rows) continue;
      source_.settings.max_batch = least_rows;
      return load();
    }
    if (is_varying() || std::exchange(has_type_, true)) return {};
    return options_.choose_type(*out_.buckets.front().model);
  }

  // Each bucket's plan on one device. Rows that depend on each other must not be those of different clients.
  Status compile_first() {
    for (size_t b = 0; b < out_.buckets.size(); ++b) {
      options_.report("compiling " + out_.buckets[b].model->served.name);
      HEDDLE_ASSIGN_OR_RETURN(auto runner, PlanRunner::create(out_.buckets[b].model, first_device()));
      first_.push_back(runner);
      if (!out_.buckets[b].model->served.batched) continue;
      auto rows = runner->check_rows();
      if (rows.ok()) continue;
      if (rows.error().code() != Code::kVerificationFailed) return rows;
      source_.settings.max_batch = 1;
      HEDDLE_RETURN_IF_ERROR(load());
      for (auto& bucket : out_.buckets)
        bucket.model->served.note = rows.error().message() + ": requests run one by one";
      return compile_first();
    }
    return {};
  }

  // How requests smaller than their bucket run: padded if that is right, else at their own shape if the engine
  // can, else not at all.
  Status decide_smaller() {
    const bool never = varying_.padding_limit < 0;
    if (!never) HEDDLE_RETURN_IF_ERROR(compile_first());
    HEDDLE_RETURN_IF_ERROR(describe());
    HEDDLE_RETURN_IF_ERROR(open_outputs());
    auto made = open_model(*out_.buckets.front().model, largest_, open_);
    if (!made.ok()) return refuse_smaller(made.error().message());
    if (auto used = use(*made); !used.ok()) return refuse_smaller(used.error().message());
    if (!has_smaller()) return refuse_smaller("");
    HEDDLE_RETURN_IF_ERROR(probe());
    if (!never) {
      HEDDLE_ASSIGN_OR_RETURN(const bool right, padding_is_right());
      if (right) return {};
      source_.settings.max_batch = 1;  // each request has a shape of its own
      HEDDLE_RETURN_IF_ERROR(load());
      HEDDLE_RETURN_IF_ERROR(describe());
      HEDDLE_RETURN_IF_ERROR(open_outputs());
      HEDDLE_RETURN_IF_ERROR(probe());
      made = open_model(*out_.buckets.front().model, largest_, open_);
      if (!made.ok()) return refuse_smaller(made.error().message());
      if (auto used = use(*made); !used.ok()) return refuse_smaller(used.error().message());
    }
    return run_at_own();
  }

  // The served model's tensors: those of the largest bucket, with their open dimensions.
  Status describe() {
    served_ = ServedModel(out_.buckets.back().model->served);
    served_.name = source_.name;
    shapes_ = {};
    open_ = largest_ = input_shapes(*out_.buckets.back().model);
    for (size_t b = 0; b < out_.buckets.size(); ++b) {
      const auto& local = *out_.buckets[b].model;
      const auto own = input_shapes(local);
      for (const auto& [name, shape] : own)
        for (size_t d = 0; d < shape.size(); ++d) {
          auto& open = open_[name][d];
          if (shape[d] != largest_[name][d]) open = -1;
          largest_[name][d] = std::max(largest_[name][d], shape[d]);
        }
      ServedBucket bucket;
      bucket.name = shapes_text(choice_.shapes[b]);
      bucket.share = choice_.shares[b];
      for (const auto& t : local.served.inputs) bucket.inputs.push_back(t.row);
      for (const auto& t : local.served.outputs) bucket.outputs.push_back(t.row);
      shapes_.buckets.push_back(std::move(bucket));
    }
    HEDDLE_RETURN_IF_ERROR(check_state());
    for (const auto& [name, shape] : choice_.open)
      for (size_t d = 0; d < shape.size(); ++d)
        if (shape[d] < 0) open_[name][d] = -1;
    for (auto& t : served_.inputs) {
      t.open = open_.at(t.name);
      if (served_.batched) t.open.erase(t.open.begin());
    }
    std::vector<std::string> names;
    shapes_.pad.assign(served_.inputs.size(), 0);
    for (size_t i = 0; i < served_.inputs.size(); ++i) {
      names.push_back(served_.inputs[i].name);
      const auto it = varying_.pad.find(names.back());
      if (it != varying_.pad.end()) shapes_.pad[i] = it->second;
    }
    for (const auto& [name, value] : varying_.pad)
      if (std::ranges::find(names, name) == names.end())
        return invalid_input("a pad value names the input '" + name + "'" + did_you_mean(name, names) +
                             "; the inputs of " + source_.name + " are " + join_names(names));
    return {};
  }

  // A session may change the bucket from request to request.
  Status check_state() const {
    if (served_.state == nullptr) return {};
    for (const auto& t : served_.state->tensors)
      for (const auto& bucket : shapes_.buckets)
        if (bucket.inputs[t.input] != served_.inputs[t.input].row ||
            bucket.outputs[t.output] != served_.inputs[t.input].row)
          return invalid_input(source_.name + ": the state '" + served_.inputs[t.input].name +
                               "' has another shape at " + bucket.name + " than at " +
                               shapes_.buckets.back().name + "; expected one shape in all buckets");
    return {};
  }

  Status use(const OpenModel& made) {
    out_.open = made;
    shapes_.output_rows = [made, served = served_](std::span<const Shape> inputs) {
      return output_rows(made, served, inputs);
    };
    // It must give what the import gives.
    for (const auto& bucket : shapes_.buckets) {
      HEDDLE_ASSIGN_OR_RETURN(const auto rows, shapes_.output_rows(bucket.inputs));
      for (size_t o = 0; o < rows.size(); ++o)
        for (size_t d = 0; d < rows[o].size(); ++d)
          if (rows[o][d] >= 0 && rows[o][d] != bucket.outputs[o][d])
            return internal_error("the shape of '" + served_.outputs[o].name + "' at " + bucket.name +
                                  " is " + shape_text(bucket.outputs[o]) + ", and " + shape_text(rows[o]) +
                                  " where dimensions stay open");
    }
    return {};
  }

  bool has_smaller() const {
    return std::ranges::any_of(open_, [](const auto& input) {
      return std::ranges::any_of(input.second, [](int64_t d) { return d < 0; });
    });
  }

  // Output dimensions that differ among the buckets are open.
  Status open_outputs() {
    for (size_t o = 0; o < served_.outputs.size(); ++o) {
      auto& t = served_.outputs[o];
      if (t.hidden) continue;
      if (t.open.empty()) t.open = t.row;
      for (const auto& bucket : shapes_.buckets)
        for (size_t d = 0; d < t.row.size(); ++d)
          if (bucket.outputs[o][d] != t.row[d]) t.open[d] = -1;
    }
    return {};
  }

  // A smaller request of each bucket.
  Status probe() {
    probes_.resize(out_.buckets.size());
    for (size_t b = 0; b < out_.buckets.size(); ++b) {
      if (!probes_[b]) {
        const auto bucket = input_shapes(*out_.buckets[b].model);
        NamedShapes below;
        if (b > 0) below = input_shapes(*out_.buckets[b - 1].model);
        const auto shapes = smaller_shapes(bucket, b > 0 ? &below : nullptr, open_);
        options_.report("trying smaller inputs in " + out_.buckets[b].model->served.name);
        HEDDLE_ASSIGN_OR_RETURN(probes_[b], probe_smaller(source_, shapes, first_device()));
      }
      if (!probes_[b]) continue;
      // What the outputs' dimensions do beside those of the buckets.
      for (size_t o = 0; o < served_.outputs.size(); ++o) {
        auto& t = served_.outputs[o];
        if (t.hidden) continue;
        auto own = probes_[b]->model->served.outputs[o].row;
        if (served_.batched) own.erase(own.begin());
        for (size_t d = 0; d < own.size(); ++d)
          if (own[d] != shapes_.buckets[b].outputs[o][d]) t.open[d] = -1;
      }
    }
    return {};
  }

  Result<bool> padding_is_right() {
    SmallerError worst;
    size_t tried = 0;
    for (size_t b = 0; b < out_.buckets.size(); ++b) {
      if (!probes_[b]) continue;
      HEDDLE_ASSIGN_OR_RETURN(const auto error,
                              padding_error(*probes_[b], *first_[b], *out_.buckets[b].model, shapes_.pad));
      keep_worst(worst, error);
      ++tried;
    }
    if (tried == 0) {
      how_ = "no smaller input could be tried";
      return false;
    }
    const bool right = worst.largest <= varying_.padding_limit;
    how_ = fmt::format("padding changes outputs by at most {:.2g} of the largest", worst.largest);
    if (worst.decisions > 0 && worst.largest > 0)
      how_ += fmt::format(" and {:.4g} % of decisions", 100 * (1 - worst.agreement));
    how_ += right ? ": smaller inputs are padded" : ": not padded";
    if (right) shapes_.smaller = SmallerRuns::kPadded;
    return right;
  }

  Status run_at_own() {
    for (const auto& t : served_.outputs)
      if (t.hidden) return refuse_smaller("the size of an output depends on data");
    auto runner = OwnShapeRunner::create(*out_.open, served_, first_device());
    if (!runner.ok()) return refuse_smaller(runner.error().message());
    SmallerError worst;
    for (const auto& probe : probes_) {
      if (!probe) continue;
      const auto error = own_shape_error(*probe, **runner);
      if (!error.ok()) return refuse_smaller(error.error().message());
      keep_worst(worst, *error);
    }
    if (!(worst.largest <= kMostSplitDifference))
      return refuse_smaller("with open dimensions the engine gives other outputs");
    shapes_.smaller = SmallerRuns::kAtOwn;
    how_ += (how_.empty() ? "" : "; ") + std::string("each request runs at its own shape, one by one");
    return {};
  }

  // Requests must have the shape of a bucket.
  Status refuse_smaller(const std::string& why) {
    shapes_.smaller = SmallerRuns::kRefused;
    const auto reason = (how_.empty() ? "" : how_ + ", and ") +
                        (why.empty() ? std::string("no dimension is open")
                                     : "the model cannot run at any other shape: " + why);
    shapes_.refusal = reason;
    how_ = "only the buckets' own shapes are served: " + reason;
    if (first_.size() < out_.buckets.size()) HEDDLE_RETURN_IF_ERROR(compile_first());
    return {};
  }

  bool at_own() const { return is_varying() && shapes_.smaller == SmallerRuns::kAtOwn; }

  Status measure() {
    if (is_varying()) {
      out_.served = std::make_shared<ServedModel>(served_);
      out_.served->note.clear();
    }
    if (!at_own()) out_.open.reset();
    for (const auto& target : options_.targets) {
      const bool is_first = &target == &options_.targets.front();
      const Device device = options_.in_type(target);
      std::shared_ptr<OwnShapeRunner> own;
      for (size_t b = 0; b < out_.buckets.size(); ++b) {
        auto& bucket = out_.buckets[b];
        options_.report("measuring " + bucket.model->served.name + " on " + target.name);
        std::vector<double> us;
        if (at_own()) {
          if (!own) {
            HEDDLE_ASSIGN_OR_RETURN(own, OwnShapeRunner::create(*out_.open, served_, device));
          }
          HEDDLE_ASSIGN_OR_RETURN(const double one,
                                  own->measure(shapes_.buckets[b], options_.measure_s, options_.deadline));
          us = {one};
          bucket.runners[target.name + "#0"] = own;
        } else {
          auto runner = is_first ? first_[b] : nullptr;
          if (!runner) {
            HEDDLE_ASSIGN_OR_RETURN(runner, PlanRunner::create(bucket.model, device));
          }
          HEDDLE_ASSIGN_OR_RETURN(us, runner->measure(options_.measure_s, options_.deadline));
          bucket.runners[target.name + "#0"] = std::move(runner);
        }
        bucket.times.push_back({target.target, std::move(us)});
      }
    }
    return {};
  }

  // The outputs' shapes of expected requests, so that none of them waits for that. A request that the
  // model does not take gets its error when it comes.
  void infer_expected() const {
    if (shapes_.smaller == SmallerRuns::kRefused) return;
    for (const auto& request : choice_.requests) {
      std::vector<Shape> rows;
      for (const auto& t : served_.inputs) {
        const auto it = request.shapes.find(t.name);
        rows.push_back(it == request.shapes.end() ? t.row : it->second);
        if (it != request.shapes.end() && served_.batched) rows.back().erase(rows.back().begin());
      }
      if (options_.deadline.should_stop()) return;
      (void)shapes_.output_rows(rows);
    }
  }

  // SLO and note, from the distribution.
  void finish() {
    double expected = 0, worst = 0;
    for (size_t b = 0; b < out_.buckets.size(); ++b) {
      double fastest = out_.buckets[b].times.front().us.front();
      for (const auto& t : out_.buckets[b].times) fastest = std::min(fastest, t.us.front());
      worst = std::max(worst, fastest);
      if (!is_varying()) continue;
      shapes_.buckets[b].us = fastest;
      expected += choice_.shares[b] * fastest;
    }
    if (is_varying()) infer_expected();
    out_.served->slo_us = served_slo_us(source_.settings, worst);
    for (auto& bucket : out_.buckets) bucket.model->served.slo_us = out_.served->slo_us;
    if (!is_varying()) return;
    auto& note = out_.served->note;
    note = counted(out_.buckets.size(), "bucket") + " to " + shapes_.buckets.back().name +
           ": a request takes " + format_us(expected) + " on average and " + format_us(worst) +
           " in the largest";
    if (choice_.padding > 0 && shapes_.smaller == SmallerRuns::kPadded)
      note += fmt::format(", {:.3g} % of the expected inputs is padding", 100 * choice_.padding);
    note += "; " + how_;
    const auto& of_batch = out_.buckets.front().model->served.note;
    if (!of_batch.empty() && !at_own()) note += "; " + of_batch;
    out_.served->varying = std::make_shared<const VaryingShapes>(std::move(shapes_));
  }

  static constexpr double kLeastShare = 1e-4;  // of a bucket's weight in the plan, also if none is expected

  ModelSource source_;
  const PrepareOptions& options_;
  const VaryingSettings varying_;
  BucketedShapes choice_;
  bool has_type_ = false;
  PreparedModel out_;
  std::vector<std::shared_ptr<PlanRunner>> first_;  // [bucket], on the first target
  // Of models of varying shapes.
  ServedModel served_;
  VaryingShapes shapes_;
  NamedShapes largest_, open_;                       // of all inputs, with the dimension of the batch
  std::vector<std::optional<SmallerProbe>> probes_;  // [bucket]
  std::string how_;                                  // smaller requests run, for people
};

}  // namespace

Result<std::shared_ptr<DeviceRunner>> PreparedModel::compile(size_t bucket, const Device& device) const {
  if (open) {
    HEDDLE_ASSIGN_OR_RETURN(auto runner, OwnShapeRunner::create(*open, *served, device));
    return std::shared_ptr<DeviceRunner>(std::move(runner));
  }
  HEDDLE_ASSIGN_OR_RETURN(auto runner, PlanRunner::create(buckets[bucket].model, device));
  return std::shared_ptr<DeviceRunner>(std::move(runner));
}

Result<PreparedModel> prepare_model(const ModelSource& source, const PrepareOptions& options) {
  return Preparation(source, options).prepare();
}

}  // namespace heddle
