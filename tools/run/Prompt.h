// A prompt as people give it: text or ids.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "runtime/base/Status.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/tokenizer/Tokenizer.h"

namespace strata::run {

struct Prompt {
  std::string text;
  std::vector<int32_t> ids;
  bool special = false;
  CLI::Option *textOption = nullptr;
  CLI::Option *idsOption = nullptr;

  void addTo(CLI::App &command); ///< [PROMPT] [--ids] [--special]

  /// The ids that the model is given. `tokenizer` is nullptr where the plan has no vocabulary.
  /// Errors: InvalidArgument (neither or both forms, text without a vocabulary), and encode()'s.
  Result<std::vector<int32_t>> resolve(const Tokenizer *tokenizer) const;
};

/// An option whose value is a list of ids, such as 1,403,407.
CLI::Option *addIdList(CLI::App &command, const std::string &name, const std::string &description,
                       std::vector<int32_t> &ids);
/// --ids of a command that takes nothing else.
CLI::Option *addIdsOption(CLI::App &command, std::vector<int32_t> &ids);

/// The plan's tokenizer; null where it has no vocabulary.
Result<std::unique_ptr<Tokenizer>> planTokenizer(const PlanFile &plan);

} // namespace strata::run
