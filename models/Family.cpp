#include "models/Family.h"

#include <algorithm>

namespace strata {
namespace {

/// Inside a function, so that it exists before the first registration whatever the order of files.
std::vector<const Family *> &registry() {
  static std::vector<const Family *> families;
  return families;
}

} // namespace

FamilyRegistration::FamilyRegistration(const Family &family) { registry().push_back(&family); }

const Family *findFamily(CheckpointFormat format, std::string_view name) {
  for (const Family *family : registry()) {
    std::vector<std::string_view> names = family->names(format);
    if (std::find(names.begin(), names.end(), name) != names.end())
      return family;
  }
  return nullptr;
}

std::vector<std::string_view> familyNames(CheckpointFormat format) {
  std::vector<std::string_view> all;
  for (const Family *family : registry()) {
    std::vector<std::string_view> names = family->names(format);
    all.insert(all.end(), names.begin(), names.end());
  }
  std::sort(all.begin(), all.end());
  return all;
}

} // namespace strata
