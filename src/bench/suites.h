// The suites that bench_suites() lists.
#pragma once

#include "rows.h"

namespace heddle::bench {

Result<std::vector<BenchRow>> bench_core(const BenchOptions& options, const Control& control);
Result<std::vector<BenchRow>> bench_dnn_partitioning(const BenchOptions& options, const Control& control);
Result<std::vector<BenchRow>> bench_diviml(const BenchOptions& options, const Control& control);
Result<std::vector<BenchRow>> bench_moirai(const BenchOptions& options, const Control& control);
Result<std::vector<BenchRow>> bench_hios(const BenchOptions& options, const Control& control);
Result<std::vector<BenchRow>> bench_cold(const BenchOptions& options, const Control& control);
Result<std::vector<BenchRow>> bench_sortinghat(const BenchOptions& options, const Control& control);
Result<std::vector<BenchRow>> bench_transport(const BenchOptions& options, const Control& control);
Result<std::vector<BenchRow>> bench_ppipe(const BenchOptions& options, const Control& control);
Result<std::vector<BenchRow>> bench_solvers(const BenchOptions& options, const Control& control);
Result<std::vector<BenchRow>> bench_serve(const BenchOptions& options, const Control& control);
Result<std::vector<BenchRow>> bench_scale(const BenchOptions& options, const Control& control);

// Parts of bench_core.
Result<std::vector<BenchRow>> bench_core_planning(const BenchOptions& options, const Control& control);
Result<std::vector<BenchRow>> bench_models(const BenchOptions& options, const Control& control);
// Parts of bench_moirai.
Result<std::vector<BenchRow>> bench_moirai_workloads(const BenchOptions& options, const Control& control);
Result<std::vector<BenchRow>> bench_moirai_zoo(const BenchOptions& options, const Control& control);

}  // namespace heddle::bench
