// The suites that bench_suites() lists.
#pragma once

#include "rows.h"

namespace heddle::bench {

Status bench_core(const BenchOptions& options, const Control& control, std::vector<BenchRow>& rows);
Status bench_models(const BenchOptions& options, const Control& control, std::vector<BenchRow>& rows);
Status bench_dnn_partitioning(const BenchOptions& options, const Control& control,
                              std::vector<BenchRow>& rows);
Status bench_diviml(const BenchOptions& options, const Control& control, std::vector<BenchRow>& rows);
Status bench_moirai(const BenchOptions& options, const Control& control, std::vector<BenchRow>& rows);
Status bench_hios(const BenchOptions& options, const Control& control, std::vector<BenchRow>& rows);
Status bench_cold(const BenchOptions& options, const Control& control, std::vector<BenchRow>& rows);
Status bench_sortinghat(const BenchOptions& options, const Control& control, std::vector<BenchRow>& rows);
Status bench_transport(const BenchOptions& options, const Control& control, std::vector<BenchRow>& rows);
Status bench_ppipe(const BenchOptions& options, const Control& control, std::vector<BenchRow>& rows);
Status bench_solvers(const BenchOptions& options, const Control& control, std::vector<BenchRow>& rows);
Status bench_serve(const BenchOptions& options, const Control& control, std::vector<BenchRow>& rows);
Status bench_scale(const BenchOptions& options, const Control& control, std::vector<BenchRow>& rows);

std::vector<std::string> hios_parts();
std::vector<std::string> moirai_parts();
std::vector<std::string> ppipe_parts();
std::vector<std::string> sortinghat_parts();

// Parts of bench_moirai.
Status bench_moirai_workloads(const BenchOptions& options, const Control& control,
                              std::vector<BenchRow>& rows);
Status bench_moirai_zoo(const BenchOptions& options, const Control& control, std::vector<BenchRow>& rows);

}  // namespace heddle::bench
