#include "heddle/runtime/cold.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>

#include "heddle/base/hash.h"
#include "heddle/base/own_cores.h"
#include "heddle/graph/model_content.h"
#include "heddle/runtime/affinity.h"
#include "heddle/runtime/segment_cache.h"
#include "run/inputs.h"
#include "run/verify.h"
#include "threads/cpu_time.h"
#include "threads/guarded.h"
#include "threads/mailbox.h"

namespace heddle {
namespace {

double us_since(int64_t begin_ns) { return static_cast<double>(now_ns() - begin_ns) / 1000; }

uint64_t model_key(const ModelReference& reference) {
  Hasher hasher;
  hasher.number(reference.file_hash).number(reference.batch ? static_cast<uint64_t>(*reference.batch) : 0);
  for (const auto& [name, shape] : reference.shapes) {
    hasher.text(name).number(shape.size());
    for (const int64_t d : shape) hasher.number(static_cast<uint64_t>(d));
  }
  for (const auto& [name, values] : reference.values) {
    hasher.text(name).number(values.size());
    for (const double v : values) hasher.number(std::bit_cast<uint64_t>(v));
  }
  hasher.number(static_cast<uint64_t>(reference.split_bytes));
  return hasher.value();
}

Error changed(const ModelReference& reference, uint64_t hash) {
  return invalid_input(reference.path + ": the plan was made for content " + hex64(reference.file_hash) +
                       ", but the file now has " + hex64(hash) + "; plan it again");
}

uint64_t key_of(const char* what, std::span<const std::string> files) {
  return Hasher().text(what).text(files_state(files)).value();
}

// The content's hash. The cache remembers it for this version of the files, as reading whole large files would take
// longer than the rest of a cached start: for the model's own file which others it has, and for all of them the hash.
Result<uint64_t> known_hash(const std::string& path, SegmentCache& cache) {
  constexpr const char* kOthers = "a model's other files";
  constexpr const char* kHash = "a model's content";
  std::vector<std::string> files = {path};
  if (const auto entry = cache.find(key_of(kOthers, files)))
    for (std::string_view rest = entry->contents(); rest.find('\0') != std::string_view::npos;
         rest.remove_prefix(rest.find('\0') + 1))
      files.emplace_back(rest.substr(0, rest.find('\0')));
  const uint64_t key = key_of(kHash, files);
  uint64_t hash = 0;
  if (const auto entry = cache.find(key); entry && entry->contents().size() == sizeof hash) {
    std::memcpy(&hash, entry->contents().data(), sizeof hash);
    return hash;
  }
  HEDDLE_ASSIGN_OR_RETURN(const ModelContent content, model_content(path));
  // Not remembered: files written while they were read, or of which not all are known. A cache that cannot be written
  // is reported later, when segments are stored.
  if (content.all_files && !content.state.empty() && files_state(content.files) == content.state) {
    std::string others;
    for (size_t i = 1; i < content.files.size(); ++i) others.append(content.files[i]).push_back('\0');
    if (!others.empty()) (void)cache.store(key_of(kOthers, {&content.files[0], 1}), others);
    (void)cache.store(key_of(kHash, content.files),
                      std::string_view(reinterpret_cast<const char*>(&content.hash), sizeof hash));
  }
  return content.hash;
}

// Imports the model once, for the first caller.
class ModelReader {
 public:
  explicit ModelReader(const ModelReference& reference) : reference_(reference) {}
  // Imports on another thread, while the caller opens devices. Some systems pack both threads on one core, so
  // the thread starts bound to a group of cores that excludes the caller's. After loading the importer's
  // library it may use all cores, and so may its own threads.
  void start() {
    half_ = other_half();
    ahead_ = start_thread_on(core_group(half_, 2), [this, all = own_cores()] {
      prepare_import();
      const AffinityGuard anywhere(all);
      (void)get();
    });
  }
  // If the caller has waited on the import's group of cores, it moves to the other group. It is moved, not
  // bound, because new threads inherit its mask.
  void leave_cores() const {
    if (other_half() != half_) const AffinityGuard moved(core_group(1 - half_, 2));
  }
  Result<std::shared_ptr<const Model>> get() {
    const std::lock_guard lock(mutex_);
    if (!model_) {
      model_.emplace(run_guarded([this] { return read(); }));
      end_ns_ = now_ns();
    }
    return *model_;
  }
  // Time at which the import ended; call get() first.
  int64_t end_ns() const { return end_ns_; }

 private:
  Result<std::shared_ptr<const Model>> read() const {
    ImportOptions options = import_options(reference_);
    options.map_weights = true;
    HEDDLE_ASSIGN_OR_RETURN(auto model, Model::load(reference_.path, options));
    if (model->file_hash() != reference_.file_hash) return changed(reference_, model->file_hash());
    return model;
  }

  const ModelReference& reference_;
  std::mutex mutex_;
  std::optional<Result<std::shared_ptr<const Model>>> model_;
  int64_t end_ns_ = 0;
  int half_ = 0;  // the group of cores in which the import begins
  std::jthread ahead_;
};

class ColdRunner {
 public:
  ColdRunner(const Problem& problem, const Plan& plan, const ColdRunOptions& options)
      : problem_(problem), plan_(plan), options_(options) {}

  Result<ColdRun> run() {
    const int64_t begin = now_ns();
    const double cpu = process_cpu_s();
    if (!problem_.model)
      return invalid_input("a cold start needs a real model; this plan's graph has none behind it");
    HEDDLE_RETURN_IF_ERROR(prepare(begin));
    for (int r = 0; r < options_.requests; ++r) {
      HEDDLE_ASSIGN_OR_RETURN(const RequestTiming timing, executor_->run(options_.deadline));
      if (r == 0) {
        result_.first_output_us = us_since(begin);
        result_.cpu_s = process_cpu_s() - cpu;
      }
      note(timing);
    }
    result_.peak_resident_bytes = executor_->peak_resident_bytes();
    if (options_.cache != nullptr) HEDDLE_RETURN_IF_ERROR(executor_->store_segments());
    if (options_.verify && executor_->moves_data()) HEDDLE_RETURN_IF_ERROR(verify());
    return result_;
  }

 private:
  Status prepare(int64_t begin) {
    reader_.emplace(*problem_.model);
    if (options_.cache == nullptr) {
      // Importing takes one core; meanwhile devices open, for which OpenVINO loads its plugin.
      reader_->start();
      prepare_import();
      reader_->leave_cores();
    } else {
      // The cache is keyed by this content; the model is read only if a segment is missing.
      HEDDLE_ASSIGN_OR_RETURN(const uint64_t hash, known_hash(problem_.model->path, *options_.cache));
      if (hash != problem_.model->file_hash) return changed(*problem_.model, hash);
      result_.import_us = us_since(begin);
    }
    ExecutorOptions executor_options;
    executor_options.deadline = options_.deadline;
    executor_options.cold = ColdOptions{.load_workers = options_.load_workers,
                                        .budget_bytes = options_.budget_bytes,
                                        .overlap = options_.overlap,
                                        .read_model = [this] { return reader_->get(); },
                                        .cache = options_.cache,
                                        .model_key = model_key(*problem_.model)};
    auto executor = Executor::create(problem_, plan_, nullptr, executor_options);
    const bool takes_inputs = executor.ok() && (*executor)->moves_data();
    auto inputs = takes_inputs ? make_inputs(*problem_.graph, options_.inputs)
                               : Result<std::vector<TensorValue>>(std::vector<TensorValue>());
    if (options_.cache == nullptr) {
      // An error in the model is reported first.
      HEDDLE_RETURN_IF_ERROR(reader_->get());
      result_.import_us = static_cast<double>(reader_->end_ns() - begin) / 1000;
    }
    HEDDLE_ASSIGN_OR_RETURN(executor_, std::move(executor));
    HEDDLE_ASSIGN_OR_RETURN(inputs_, std::move(inputs));
    if (takes_inputs) give_inputs(*executor_, inputs_);
    result_.prepare_us = us_since(begin) - result_.import_us;
    return {};
  }

  void note(const RequestTiming& timing) {
    result_.request_us.push_back(timing.latency_us);
    const auto loadings = executor_->loadings();
    std::vector<ColdSegment> segments(plan_.segments.size());
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      const Step& step = plan_.steps[i];
      if (step.kind != StepKind::kRun) continue;
      ColdSegment& s = segments[step.segment.index()];
      if (step.segment.index() < loadings.size()) s.loading = loadings[step.segment.index()];
      s.start_us = timing.steps[i].start_us;
      s.finish_us = timing.steps[i].finish_us;
      s.wait_us = std::max(0.0, s.start_us - s.loading.ready_us);
    }
    result_.requests.push_back(std::move(segments));
  }

  Status verify() {
    HEDDLE_ASSIGN_OR_RETURN(const auto model, reader_->get());
    Verification v;
    v.problem = &problem_;
    v.plan = &plan_;
    v.model = model;
    v.inputs = inputs_;
    v.rtol = options_.rtol;
    v.atol = options_.atol;
    v.again.deadline = options_.deadline;
    return verify_plan(v, executor_, 1, result_);
  }

  const Problem& problem_;
  const Plan& plan_;
  const ColdRunOptions& options_;
  std::optional<ModelReader> reader_;
  std::vector<TensorValue> inputs_;
  ColdRun result_;
  std::unique_ptr<Executor> executor_;
};

}  // namespace

Result<ColdRun> run_cold(const Problem& problem, const Plan& plan, const ColdRunOptions& options) {
  if (options.requests < 1)
    return invalid_input("a cold start needs at least one request, not " + std::to_string(options.requests));
  return ColdRunner(problem, plan, options).run();
}

}  // namespace heddle
