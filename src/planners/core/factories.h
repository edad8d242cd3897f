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
std::unique_ptr<Planner> make_cold_serial();
std::unique_ptr<Planner> make_cold_single();
std::unique_ptr<Planner> make_deepplan();
std::unique_ptr<Planner> make_efficient_mip();
std::unique_ptr<Planner> make_sortinghat();
std::unique_ptr<Planner> make_sortinghat_cp();
std::unique_ptr<Planner> make_cold_search();
std::unique_ptr<Planner> make_heft();
std::unique_ptr<Planner> make_heft_links();
std::unique_ptr<Planner> make_lookahead();
std::unique_ptr<Planner> make_pipeline();
std::unique_ptr<Planner> make_placement_search();
std::unique_ptr<Planner> make_replicate();
std::unique_ptr<Planner> make_local_search();
std::unique_ptr<Planner> make_cp_sat();
std::unique_ptr<Planner> make_sa();
std::unique_ptr<Planner> make_ea();
std::unique_ptr<Planner> make_schedule_sa();
std::unique_ptr<Planner> make_diviml_milp();
std::unique_ptr<Planner> make_diviml_cp();
std::unique_ptr<Planner> make_diviml_throughput();
std::unique_ptr<Planner> make_milp_split();
std::unique_ptr<Planner> make_cp_split();
std::unique_ptr<Planner> make_auto();
std::unique_ptr<Planner> make_moirai();
std::unique_ptr<Planner> make_flow_search();
std::unique_ptr<Planner> make_m_sct();
std::unique_ptr<Planner> make_getf();
std::unique_ptr<Planner> make_placeto();
std::unique_ptr<Planner> make_sequential();
std::unique_ptr<Planner> make_ios();
std::unique_ptr<Planner> make_hios_lp();
std::unique_ptr<Planner> make_hios_lp_inter();
std::unique_ptr<Planner> make_hios_lp_ios();
std::unique_ptr<Planner> make_hios_mr();
std::unique_ptr<Planner> make_hios_mr_inter();
std::unique_ptr<Planner> make_heft_stages();
std::unique_ptr<Planner> make_stage_list();
std::unique_ptr<Planner> make_stage_search();
std::unique_ptr<Planner> make_stage_cp();

}  // namespace heddle
