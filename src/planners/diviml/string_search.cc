#include "string_search.h"

#include <algorithm>

namespace heddle {
StringSearch::StringSearch(const TaskModel& model, uint64_t seed)
    : model_(model), whole_(whole_problem(model)), random_(seed) {
  std::vector<int> level(model.num_tasks(), 0);
  std::vector<uint32_t> order;
  for (uint32_t t = 0; t < model.num_tasks(); ++t) {
    order.push_back(t);
    for (const TaskModel::Edge& e : model.out(t)) level[e.dst] = std::max(level[e.dst], level[t] + 1);
  }
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return level[a] < level[b]; });
  std::vector<Batch> fastest;
  for (const uint32_t t : order) {
    Batch best{t, 0, model.all_requests()};
    for (uint32_t d = 1; d < model.num_devices(); ++d) {
      if (model.us(t, d, 1) < model.us(t, best.device, 1)) best.device = d;
    }
    fastest.push_back(best);
  }
  schedule_.emplace(whole_, fastest);
  schedule_->begin_move();
}

void StringSearch::start_from(const std::vector<Batch>& batches) {
  schedule_.emplace(whole_, batches);
  schedule_->begin_move();
  has_start_ = true;
}

std::vector<uint32_t> StringSearch::genes() const {
  std::vector<uint32_t> genes(size());
  for (size_t g = 0; g < genes.size(); ++g) genes[g] = schedule_->device(task(g), request(g));
  return genes;
}

void StringSearch::set_genes(const std::vector<uint32_t>& genes) {
  undo();
  for (size_t g = 0; g < genes.size(); ++g) schedule_->set_device(task(g), request(g), genes[g]);
  fitness();
  keep();
}

bool StringSearch::mutate(size_t gene) {
  const uint32_t task = this->task(gene), now = schedule_->device(task, request(gene));
  const auto other = [&](uint32_t d) { return d != now && model_.us(task, d, 1) < kImpossible; };
  const auto devices = static_cast<uint32_t>(model_.num_devices());
  uint64_t others = 0;
  for (uint32_t d = 0; d < devices; ++d) others += other(d) ? 1 : 0;
  if (others == 0) return false;
  uint64_t skip = random_.below(others);
  uint32_t choice = 0;
  while (!other(choice) || skip-- > 0) ++choice;
  schedule_->set_device(task, request(gene), choice);
  return true;
}

void StringSearch::undo() {
  schedule_->undo();
  schedule_->begin_move();
}

void StringSearch::keep() {
  schedule_->keep();
  schedule_->begin_move();
}

Result<PlannerOutput> plan_by_strings(const Problem& problem, const PlannerOptions& options,
                                      const std::string& name, const RunStrings& run) {
  PlanStore candidates(problem);
  return plan_on_each_set(problem, options, name, candidates,
                          [&](const TaskModel& model, const Deadline& deadline) -> Status {
                            StringSearch search(model, options.seed);
                            if (options.start != nullptr) {
                              const auto start = to_batches(model, assignment_of(problem, *options.start));
                              if (!start.empty()) search.start_from(start);
                            }
                            candidates.offer(to_assignment(model, search.batches()), name);
                            run(search, deadline);
                            candidates.offer(to_assignment(model, search.batches()), name);
                            return {};
                          });
}

}  // namespace heddle
