// A custom mutator and crossover for targets whose inputs are JSON: they change the tree, not the bytes. Include this
// header in a target to link them.
//
// Members that mutations add come from the seeds that are given on the command line. The same libFuzzer seed gives the
// same mutations.
#pragma once

#include <cstddef>
#include <string_view>

// The part of an input that is JSON.
struct JsonPlace {
  size_t begin = 0, end = 0;
};

// All of the input, unless a target defines another one. begin <= end <= the input's size.
JsonPlace json_place(std::string_view input);
