// A model whose inputs keep open dimensions. It tells what shapes its outputs have for shapes of its inputs, and gives
// the model for an engine that takes inputs of any shape.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/graph/model.h"

namespace heddle {

// The names of an .onnx file's inputs, weights aside. Unsupported for other formats. Errors name the file.
Result<std::vector<std::string>> onnx_input_names(const std::string& path);

// Thread-safe.
class VaryingModel {
 public:
  // `largest` gives, for each input with open dimensions, its largest shape, and `open` the same with -1 where
  // it varies; `options` has the shapes of the other inputs. The file was imported before, at fixed shapes.
  // Errors: as Model::load(), and a model that cannot be converted before its shapes are known.
  static Result<std::shared_ptr<const VaryingModel>> load(const std::string& path,
                                                          const ImportOptions& options,
                                                          const std::map<std::string, Shape>& largest,
                                                          const std::map<std::string, Shape>& open);
  ~VaryingModel();
  VaryingModel(const VaryingModel&) = delete;
  VaryingModel& operator=(const VaryingModel&) = delete;

  // The shapes of the file's outputs, in its order, with -1 where a size depends on data. `inputs` has a shape
  // for each input that varies. Invalid input if the model does not take these shapes; the message has the
  // reason. The first call for some shapes infers them (some ms), later ones look them up.
  Result<std::vector<Shape>> output_shapes(const std::map<std::string, Shape>& inputs) const;

  // By name, in the order of the model's parameters.
  const std::vector<std::string>& inputs() const;
  // With open dimensions between 1 and their largest size. Not to be changed.
  const std::shared_ptr<ov::Model>& model() const;

 private:
  struct Impl;
  explicit VaryingModel(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace heddle
