// The planners' factories, for the registry.
#pragma once

#include <memory>

#include "heddle/planners/planner.h"

namespace heddle {

std::unique_ptr<Planner> make_single();
std::unique_ptr<Planner> make_round_robin();
std::unique_ptr<Planner> make_met();
std::unique_ptr<Planner> make_greedy();
std::unique_ptr<Planner> make_critical_path();
std::unique_ptr<Planner> make_heft();
std::unique_ptr<Planner> make_heft_links();
std::unique_ptr<Planner> make_lookahead();
std::unique_ptr<Planner> make_pipeline();
std::unique_ptr<Planner> make_replicate();
std::unique_ptr<Planner> make_local_search();
std::unique_ptr<Planner> make_cp_sat();
std::unique_ptr<Planner> make_sa();
std::unique_ptr<Planner> make_ea();
std::unique_ptr<Planner> make_diviml_milp();
std::unique_ptr<Planner> make_diviml_cp();
std::unique_ptr<Planner> make_diviml_throughput();
std::unique_ptr<Planner> make_milp_split();
std::unique_ptr<Planner> make_cp_split();
std::unique_ptr<Planner> make_auto();
std::unique_ptr<Planner> make_moirai();
std::unique_ptr<Planner> make_m_sct();
std::unique_ptr<Planner> make_getf();
std::unique_ptr<Planner> make_placeto();

}  // namespace heddle
