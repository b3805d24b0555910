#include "codegen/Compile.h"

#include <cstdio>
#include <filesystem>
#include <memory>

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/ThreadPool.h"

#include "codegen/TextCheck.h"
#include "codegen/targets/Target.h"
#include "codegen/write/Writer.h"
#include "ir/Strata.h"
#include "models/Import.h"
#include "passes/Passes.h"
#include "runtime/base/OutputFile.h"
#include "runtime/checkpoint/Checkpoint.h"
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
  if (source.checkpoint->format() == CheckpointFormat::ConfigOnly && options.weights != "none")
    return makeError(StatusCode::InvalidArgument,
                     "'{}' has no weights; say so: --weights=none --weight-type T", options.model);
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

/// The pass after the last one that ran.
std::string_view failedPass(ir::ModelOp model) {
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

Status finishPlan(const Source &source, const CompileOptions &options) {
  STRATA_ASSIGN_OR_RETURN(ir::ModelOp model, onlyModel(*source.module, options.model));
  WriteOptions write;
  write.path = options.output;
  write.weights = options.weights;
  write.progress = options.progress;
  STRATA_RETURN_IF_ERROR(writePlan(model, source.checkpoint.get(), write));
  if (!options.explain)
    return Status::ok();
  STRATA_ASSIGN_OR_RETURN(std::shared_ptr<const PlanFile> plan, PlanFile::open(options.output));
  std::string table = memoryTableText(plan->plan());
  bool written = std::fwrite(table.data(), 1, table.size(), stdout) == table.size();
  return written && std::fflush(stdout) == 0
             ? Status::ok()
             : makeError(StatusCode::Internal, "standard output cannot be written");
}

} // namespace

bool isModelText(const std::string &path) {
  return std::filesystem::path(path).extension() == ".mlir";
}

Status compileModel(const CompileOptions &options) {
  STRATA_RETURN_IF_ERROR(checkOutput(options));
  DialectRegistry registry;
  registry.insert<ir::StrataDialect>();
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  llvm::DefaultThreadPool threads(llvm::hardware_concurrency(options.threads));
  if (options.threads != 1)
    context.setThreadPool(threads);
  context.loadAllAvailableDialects();
  context.printOpOnDiagnostic(false); // a stage is hundreds of lines
  Diagnostics diagnostics(context, options);
  STRATA_RETURN_IF_ERROR(enableRemarks(context, options.remarksFilter));
  Result<Source> read = isModelText(options.model) ? readText(context, options, diagnostics)
                                                   : importSource(context, options, diagnostics);
  if (!read.isOk())
    return std::move(read).status();
  Source source = *std::move(read);

  bool writesText = options.emit != Emit::Plan || !options.emitAfter.empty();
  if (writesText && options.explain)
    return makeError(StatusCode::InvalidArgument,
                     "--explain prints a plan's memory table, but --emit writes no plan; leave one "
                     "out");
  if (writesText) {
    std::string_view until = !options.emitAfter.empty()     ? options.emitAfter
                             : options.emit == Emit::Placed ? placedLevelPass
                                                            : plannedLevelPass;
    if (options.emit != Emit::Model || !options.emitAfter.empty())
      STRATA_RETURN_IF_ERROR(runPipeline(*source.module, options, until, diagnostics));
    return writeText(*source.module, options.output);
  }
  if (options.output.empty())
    return makeError(StatusCode::InvalidArgument, "-o names the plan to write");
  if (isModelText(options.model) && !source.checkpoint && options.weights != "none")
    return makeError(
        StatusCode::InvalidArgument,
        "'{}' names tensors; --checkpoint says where they are, or --weights=none leaves "
        "them out",
        options.model);
  STRATA_RETURN_IF_ERROR(runPipeline(*source.module, options, "", diagnostics));
  return finishPlan(source, options);
}

} // namespace strata
