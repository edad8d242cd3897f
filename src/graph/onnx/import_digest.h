// SHA-256 of all that an import reads. Unlike Model::file_hash(), no other model can be made that has the same.
#pragma once

#include <map>
#include <stop_token>
#include <string>
#include <string_view>

#include "heddle/base/status.h"
#include "heddle/graph/model.h"

namespace heddle::internal {

// The options that change an import, the file's kind and the importer's release, as bytes: different imports never
// have the same text.
std::string import_recipe(const std::string& extension, const ImportOptions& options);

// SHA-256 over a file's length and the SHA-256 of each of its chunks of 4 MiB, which several threads compute.
// Without meaning if a stop is requested.
std::string tree_digest(std::string_view bytes, const std::stop_token& stop = {});

// 64 hexadecimal digits over the recipe, the model's file and its other files. `others`: path by the name that the
// model has for the file; one file under many names is read once. Fails if a file cannot be read, if a stop is
// requested, or if the other files have more than 64 GiB.
Result<std::string> import_digest(const std::string& recipe, std::string_view file,
                                  const std::map<std::string, std::string>& others,
                                  const std::stop_token& stop = {});

// Inode, size and times of the files, as bytes: the same as long as nothing was written to them. Empty if a file
// cannot be examined.
std::string files_state(const std::string& path, const std::map<std::string, std::string>& others);

}  // namespace heddle::internal
