// A custom mutator and crossover for targets whose inputs are sequences of protobuf messages: they change fields, not
// bytes. Include this header in a target to link them.
//
// An input is a row of frames: a tag of one byte, the length in two bytes, the greater one first, and the message.
// Values that mutations use come also from the seeds that are given on the command line. The same libFuzzer seed gives
// the same mutations.
#pragma once

#include <google/protobuf/message.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct Frame {
  char tag = 0;
  std::string bytes;
};

// A last frame that is cut is left out.
std::vector<Frame> frames_of(std::string_view input);

// What a target defines: its tags, and an empty message of the type that frames with a tag hold; null: they hold bytes.
extern const std::string_view kFrameTags;
std::unique_ptr<google::protobuf::Message> message_of(char tag);
