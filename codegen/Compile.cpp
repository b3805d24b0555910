#include "codegen/Compile.h"

#include <cstdio>
#include <filesystem>
#include <memory>

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/ThreadPool.h"

#include "codegen/TextCheck.h"
#include "codegen/select/Selection.h"
#include "codegen/targets/Target.h"
#include "codegen/write/Writer.h"
#include "ir/Strata.h"
#include "models/Import.h"
#include "passes/Passes.h"
#include "runtime/base/OutputFile.h"
#include "runtime/checkpoint/Checkpoint.h"
#include "runtime/plan/MemoryPage.h"
#include "runtime/plan/MemoryTable.h"
#include "runtime/plan/PlanFile.h"

using namespace mlir;

namespace strata {
namespace {

/// `layer 3: ` or `model.mlir:12:5: `, where the location says it.
std::string placeOf(Location location) {
  if (auto file = location->findInstanceOf<FileLineColLoc>())
    return fmt::format("{}:{}:{}: ", file.getFilename().str(), file.getLine(), file.getColumn());
  if (auto name = location->findInstanceOf<NameLoc>())
    return name.getName().str() + ": ";
  return "";
}

/// Keeps the first error with its notes and passes the rest on as it comes.
class Diagnostics {
public:
  Diagnostics(MLIRContext &context, const CompileOptions &options)
      : handler_(&context,
                 [this, &options](Diagnostic &diagnostic) { take(diagnostic, options); }) {}

  const std::string &error() const { return error_; }

private:
  void take(Diagnostic &diagnostic, const CompileOptions &options) {
    std::string text = placeOf(diagnostic.getLocation()) + diagnostic.str();
    for (Diagnostic &note : diagnostic.getNotes())
      text += "\n  note: " + placeOf(note.getLocation()) + note.str();
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error && error_.empty())
      error_ = std::move(text);
    else
      options.note(text);
  }

  std::string error_;
  ScopedDiagnosticHandler handler_;
};

Status enableRemarks(MLIRContext &context, const std::string &filter) {
  if (filter.empty())
    return Status::ok();
  std::string error;
  if (!llvm::Regex(filter).isValid(error))
    return makeError(StatusCode::InvalidArgument,
                     "remarks filter '{}' is no regular expression: {}", filter, error);
  // `all` adds to the four others and is not looked at where they are absent.
  remark::RemarkCategories categories;
  categories.passed = categories.missed = categories.analysis = categories.failed = filter;
  if (failed(remark::enableOptimizationRemarks(
          context, nullptr, std::make_unique<remark::RemarkEmittingPolicyAll>(), categories,
          /*printAsEmitRemarks=*/true)))
    return makeError(StatusCode::Internal, "remarks cannot be enabled");
  return Status::ok();
}

Result<ir::ModelOp> onlyModel(ModuleOp module, const std::string &path) {
  auto models = llvm::to_vector(module.getOps<ir::ModelOp>());
  if (models.size() != 1)
    return makeError(StatusCode::InvalidData, "'{}' holds {} strata.model, must hold one", path,
                     models.size());
  return models.front();
}

/// In a text that no pass has seen, devices may be written as people write them (`cpu`).
Status resolveDevices(ir::ModelOp model) {
  if (model.getAfter())
    return Status::ok();
  SmallVector<std::string> targets;
  SmallVector<int64_t> bytes(model.getDeviceBytes());
  bytes.resize(model.getDevices().size(), 0);
  for (auto [i, device] : llvm::enumerate(model.getDevices().getAsValueRange<StringAttr>())) {
    STRATA_ASSIGN_OR_RETURN(DeviceRequest request, parseDevice(device.str()));
    targets.push_back(request.target.name);
    if (request.bytes)
      bytes[i] = int64_t(request.bytes);
  }
  Builder builder(model.getContext());
  SmallVector<StringRef> names(targets.begin(), targets.end());
  model.setDevicesAttr(builder.getStrArrayAttr(names));
  if (llvm::any_of(bytes, [](int64_t size) { return size != 0; }))
    model.setDeviceBytes(bytes);
  return Status::ok();
}

/// A module, and the checkpoint whose tensors it names (null: a text alone).
struct Source {
  std::unique_ptr<Checkpoint> checkpoint;
  OwningOpRef<ModuleOp> module;
};

Result<Source> readText(MLIRContext &context, const CompileOptions &options,
                        const Diagnostics &diagnostics) {
  Source source;
  STRATA_RETURN_IF_ERROR(checkModelText(options.model));
  source.module = parseSourceFile<ModuleOp>(options.model, &context);
  if (!source.module)
    return makeError(StatusCode::InvalidData, "{}", diagnostics.error());
  STRATA_ASSIGN_OR_RETURN(ir::ModelOp model, onlyModel(*source.module, options.model));
  STRATA_RETURN_IF_ERROR(resolveDevices(model));
  // A text may have been edited since verify-plan saw it, and the writer relies on that pass.
  std::span<const std::string_view> order = pipelinePasses();
  auto nameOf = [](std::string_view pass) { return StringRef(pass.data(), pass.size()); };
  bool writesPlan = options.emit == Emit::Plan && options.emitAfter.empty();
  if (writesPlan && model.getAfter() == nameOf(order.back()))
    model.setAfter(nameOf(order[order.size() - 2]));
  if (!options.checkpoint.empty()) {
    STRATA_ASSIGN_OR_RETURN(source.checkpoint, Checkpoint::open(options.checkpoint));
  }
  return source;
}

Result<Source> importSource(MLIRContext &context, const CompileOptions &options,
                            const Diagnostics &diagnostics) {
  if (!options.checkpoint.empty())
    return makeError(StatusCode::InvalidArgument,
                     "--checkpoint {} belongs to a text of the dialect, and '{}' is a checkpoint "
                     "itself",
                     options.checkpoint, options.model);
  Source source;
  STRATA_ASSIGN_OR_RETURN(source.checkpoint, Checkpoint::open(options.model));
  bool writesPlan = options.emit == Emit::Plan && options.emitAfter.empty();
  if (source.checkpoint->format() == CheckpointFormat::ConfigOnly && writesPlan &&
      options.weights != "none" && !options.dryRun)
    return makeError(StatusCode::InvalidArgument,
                     "'{}' has no weights; say so: --weights=none --weight-type T, or --dry-run",
                     options.model);
  Result<ImportedModel> imported = importModel(context, *source.checkpoint, options.import);
  if (!imported.isOk()) {
    const Status &status = imported.status();
    if (status.code() == StatusCode::Internal && !diagnostics.error().empty())
      return makeError(StatusCode::Internal, "{}: {}", status.message(), diagnostics.error());
    return status;
  }
  for (const std::string &note : imported->notes)
    options.note(note);
  source.module = std::move(imported->module);
  return source;
}

StatusCode refusalCode(std::string_view pass) {
  if (pass == "partition-stages")
    return StatusCode::ResourceExhausted;
  return pass == "select-kernels" ? StatusCode::Unimplemented : StatusCode::InvalidData;
}

/// The pass after the last one that ran; where that plans a copy within the model, the copy's.
std::string_view failedPass(ir::ModelOp model) {
  if (auto copies = model.getOps<ir::ModelOp>(); !copies.empty())
    return failedPass(*copies.begin());
  std::span<const std::string_view> order = pipelinePasses();
  StringRef after = model.getAfter().value_or("");
  auto last = llvm::find(order, std::string_view(after.data(), after.size()));
  return last == order.end() ? order.front() : last + 1 == order.end() ? *last : *(last + 1);
}

/// Runs what still has to run, up to and including `until` (empty: all).
Status runPipeline(ModuleOp module, const CompileOptions &options, std::string_view until,
                   const Diagnostics &diagnostics) {
  STRATA_ASSIGN_OR_RETURN(ir::ModelOp model, onlyModel(module, options.model));
  PassManager manager(module.getContext(), ModuleOp::getOperationName());
  std::string text;
  llvm::raw_string_ostream errors(text);
  if (failed(addPipeline(manager.nest<ir::ModelOp>(), model.getAfter().value_or(""),
                         StringRef(until.data(), until.size()), errors)))
    return makeError(StatusCode::InvalidArgument, "{}", text);
  if (succeeded(manager.run(module)))
    return Status::ok();
  std::string_view pass = failedPass(model);
  return makeError(refusalCode(pass), "{} (pass {})", diagnostics.error(), pass);
}

Status writeText(ModuleOp module, const std::string &path) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module->print(stream);
  stream << "\n";
  if (path.empty()) {
    bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
    return written && std::fflush(stdout) == 0
               ? Status::ok()
               : makeError(StatusCode::Internal, "standard output cannot be written");
  }
  STRATA_ASSIGN_OR_RETURN(std::unique_ptr<OutputFile> file, OutputFile::create(path));
  STRATA_RETURN_IF_ERROR(file->append(std::as_bytes(std::span(text))));
  return file->publish(path);
}

/// Refuses an output that would replace what it is made from, or what is no file.
Status checkOutput(const CompileOptions &options) {
  STRATA_RETURN_IF_ERROR(checkOutputPath(options.output));
  for (const std::string &input : {options.model, options.checkpoint}) {
    std::error_code ignored; // an output that is not there yet is no input
    if (std::filesystem::equivalent(options.output, input, ignored))
      return makeError(StatusCode::InvalidArgument,
                       "-o {} would overwrite the input '{}'; name another file", options.output,
                       input);
  }
  return Status::ok();
}

Status explainPlan(const fb::Plan &plan, Explain explain) {
  std::string table = explain == Explain::Html   ? memoryPageHtml(plan)
                      : explain == Explain::Json ? memoryTableJson(plan) + "\n"
                                                 : memoryTableText(plan);
  bool written = std::fwrite(table.data(), 1, table.size(), stdout) == table.size();
  return written && std::fflush(stdout) == 0
             ? Status::ok()
             : makeError(StatusCode::Internal, "standard output cannot be written");
}

/// Whether each device holds all that its stage takes; what a worker takes is for the runtime to
/// add.
Status checkDevices(ir::ModelOp model, const fb::Plan &plan) {
  std::vector<MemoryEntry> entries = memoryEntries(plan);
  for (auto [stage, capacity] : llvm::enumerate(model.getDeviceBytes())) {
    uint64_t taken = 0;
    for (const MemoryEntry &entry : entries)
      if (entry.stage == stage && entry.per.empty())
        taken += entry.bytes;
    if (capacity != 0 && taken > static_cast<uint64_t>(capacity))
      return makeError(StatusCode::ResourceExhausted,
                       "stage {} takes {} bytes, its device has {}: short by {}; a smaller "
                       "--max-context, --max-seqs or --max-batch-tokens gives room\n{}",
                       stage, taken, capacity, taken - static_cast<uint64_t>(capacity),
                       memoryTableText(plan));
  }
  return Status::ok();
}

/// Says which ops no kernel of their target runs.
void noteMissingKernels(ir::ModelOp model, const CompileOptions &options) {
  for (ir::StageOp stage : model.getOps<ir::StageOp>()) {
    Result<Target> target = findTarget(stage.getDevice().str());
    llvm::MapVector<StringRef, std::pair<int64_t, std::string>> missing; // to count and one op
    stage.walk([&](ir::DispatchOp dispatch) {
      StringRef kernel = kernelName(dispatch.getKernel());
      if (target->library.has({kernel.data(), kernel.size()}))
        return;
      auto &[count, op] = missing[kernel];
      ++count;
      op = dispatch.getLabel().str();
    });
    for (const auto &[kernel, use] : missing)
      options.note(fmt::format("stage '{}': {} commands, such as '{}', have no kernel on {}: '{}'",
                               stage.getSymName().str(), use.first, use.second,
                               stage.getDevice().str(), kernel.str()));
  }
}

Status finishPlan(const Source &source, const CompileOptions &options) {
  STRATA_ASSIGN_OR_RETURN(ir::ModelOp model, onlyModel(*source.module, options.model));
  STRATA_ASSIGN_OR_RETURN(flatbuffers::DetachedBuffer described, describePlan(model));
  const fb::Plan &description = *fb::GetPlan(described.data());
  STRATA_RETURN_IF_ERROR(checkDevices(model, description));
  if (options.dryRun) {
    noteMissingKernels(model, options);
    return explainPlan(description, options.explain);
  }
  WriteOptions write;
  write.path = options.output;
  write.weights = options.weights;
  write.progress = options.progress;
  STRATA_RETURN_IF_ERROR(writePlan(model, source.checkpoint.get(), write));
  if (options.explain == Explain::No)
    return Status::ok();
  STRATA_ASSIGN_OR_RETURN(std::shared_ptr<const PlanFile> plan, PlanFile::open(options.output));
  return explainPlan(plan->plan(), options.explain);
}

/// Of one compilation.
class Session {
public:
  explicit Session(const CompileOptions &options)
      : options(options), context(makeRegistry(), MLIRContext::Threading::DISABLED),
        threads(llvm::hardware_concurrency(options.threads)), diagnostics(context, options) {
    if (options.threads != 1)
      context.setThreadPool(threads);
    context.loadAllAvailableDialects();
    context.printOpOnDiagnostic(false); // a stage is hundreds of lines
  }

  Result<Source> read() {
    STRATA_RETURN_IF_ERROR(enableRemarks(context, options.remarksFilter));
    Result<Source> source = isModelText(options.model)
                                ? readText(context, options, diagnostics)
                                : importSource(context, options, diagnostics);
    if (source.isOk() && options.dryRun) {
      STRATA_ASSIGN_OR_RETURN(ir::ModelOp model, onlyModel(*source->module, options.model));
      model->setAttr(dryRunAttribute, UnitAttr::get(&context));
    }
    return source;
  }
  Status runPasses(const Source &source, std::string_view until) {
    return runPipeline(*source.module, options, until, diagnostics);
  }

private:
  static DialectRegistry makeRegistry() {
    DialectRegistry registry;
    registry.insert<ir::StrataDialect>();
    return registry;
  }

  const CompileOptions &options;
  MLIRContext context;
  llvm::DefaultThreadPool threads;
  Diagnostics diagnostics;
};

/// Plans with `rows` rows: 0 where that does not fit, else the most tokens that all sequences hold.
Result<int64_t> tokensWhereItFits(CompileOptions options, int64_t rows) {
  options.import.maxRows = rows;
  options.note = [](const std::string &) {};
  options.remarksFilter.clear();
  Session session(options);
  STRATA_ASSIGN_OR_RETURN(Source source, session.read());
  STRATA_ASSIGN_OR_RETURN(ir::ModelOp model, onlyModel(*source.module, options.model));
  Status status = session.runPasses(source, "");
  if (status.isOk()) {
    STRATA_ASSIGN_OR_RETURN(flatbuffers::DetachedBuffer plan, describePlan(model));
    status = checkDevices(model, *fb::GetPlan(plan.data()));
  }
  if (status.isOk())
    return model.getMaxContext() * model.getMaxSequences();
  // One row must fit; what stands in its way is the answer.
  if (status.code() != StatusCode::ResourceExhausted || rows == 1)
    return status;
  return 0;
}

/// The largest number of rows that fits, where one more does not (or is of no use, since the
/// sequences hold no more tokens).
Result<int64_t> largestBatch(const CompileOptions &options) {
  for (const ImportDevice &device : options.import.devices)
    if (device.bytes == 0)
      return makeError(StatusCode::InvalidArgument,
                       "--max-batch-tokens auto fills the devices, so each needs a size: "
                       "--devices cpu:4GiB");
  STRATA_ASSIGN_OR_RETURN(int64_t tokens, tokensWhereItFits(options, 1));
  int64_t known = 1, limit = std::min<int64_t>(tokens, maxBatchTokens) + 1;
  // Doubling first: planning many rows that cannot fit costs the most.
  for (int64_t step = 2; limit - known > 1; step *= 2) {
    int64_t middle = step < limit ? step : known + (limit - known) / 2;
    STRATA_ASSIGN_OR_RETURN(int64_t fits, tokensWhereItFits(options, middle));
    (fits ? known : limit) = middle;
  }
  return known;
}

} // namespace

bool isModelText(const std::string &path) {
  return std::filesystem::path(path).extension() == ".mlir";
}

Status compileModel(const CompileOptions &given) {
  CompileOptions options = given;
  STRATA_RETURN_IF_ERROR(checkOutput(options));
  bool writesText = options.emit != Emit::Plan || !options.emitAfter.empty();
  if (options.dryRun && (writesText || !options.output.empty()))
    return makeError(StatusCode::InvalidArgument,
                     "--dry-run writes nothing: leave out -o, --emit and --emit-after");
  if (options.largestBatch) {
    STRATA_ASSIGN_OR_RETURN(options.import.maxRows, largestBatch(options));
    options.note(fmt::format("--max-batch-tokens auto is {} here", options.import.maxRows));
  }
  Session session(options);
  STRATA_ASSIGN_OR_RETURN(Source source, session.read());

  if (writesText && options.explain != Explain::No)
    return makeError(StatusCode::InvalidArgument,
                     "--explain prints a plan's memory table, but --emit writes no plan; leave one "
                     "out");
  if (writesText) {
    std::string_view until = !options.emitAfter.empty()     ? options.emitAfter
                             : options.emit == Emit::Placed ? placedLevelPass
                                                            : plannedLevelPass;
    if (options.emit != Emit::Model || !options.emitAfter.empty())
      STRATA_RETURN_IF_ERROR(session.runPasses(source, until));
    return writeText(*source.module, options.output);
  }
  if (options.output.empty() && !options.dryRun)
    return makeError(StatusCode::InvalidArgument, "-o names the plan to write");
  if (isModelText(options.model) && !source.checkpoint && options.weights != "none" &&
      !options.dryRun)
    return makeError(
        StatusCode::InvalidArgument,
        "'{}' names tensors; --checkpoint says where they are, or --weights=none leaves "
        "them out",
        options.model);
  STRATA_RETURN_IF_ERROR(session.runPasses(source, ""));
  return finishPlan(source, options);
}

} // namespace strata
