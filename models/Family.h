// What a family of models is to the compiler, and how one is found.
//
// A family is one file. It defines a Family and a FamilyRegistration for it, and nothing outside
// that file names the family: an import looks the checkpoint's own word for itself up among those
// that the registered families claim.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/ConfigReader.h"
#include "models/ModelBuilder.h"
#include "runtime/checkpoint/Checkpoint.h"

namespace strata {

class Family {
public:
  virtual ~Family() = default;

  /// What checkpoints of this family call themselves: `general.architecture` of a GGUF file,
  /// `model_type` of a config.json.
  virtual std::vector<std::string_view> names(CheckpointFormat format) const = 0;

  /// Reads every configuration key that matters, then builds the model. `name` is the one of
  /// `names()` that the checkpoint has. Calls `config.finish()` before it builds, so that no number
  /// out of range reaches the builder. Missing and misshapen tensors are the builder's to report.
  virtual Status build(std::string_view name, const Checkpoint &checkpoint, ConfigReader &config,
                       ModelBuilder &builder) const = 0;
};

/// A static object of this type beside a family's definition makes it known. The library is linked
/// whole, so that no registration is left out.
class FamilyRegistration {
public:
  explicit FamilyRegistration(const Family &family);
};

/// The family that claims `name`, or nullptr.
const Family *findFamily(CheckpointFormat format, std::string_view name);

/// Every name that some family claims, sorted.
std::vector<std::string_view> familyNames(CheckpointFormat format);

} // namespace strata
