#include "runtime/stage/PlanExecutor.h"

#include <algorithm>
#include <thread>

#include "runtime/base/CheckedMath.h"
#include "runtime/device/CpuDevice.h"
#include "runtime/device/cuda/CudaDevice.h"
#include "runtime/plan/PlanAccess.h"

namespace strata {
namespace {

std::vector<Flow::Edge> edgesOf(const fb::Plan &plan) {
  std::vector<Flow::Edge> edges;
  for (uint32_t i = 0; i < count(plan.handoffs()); ++i) {
    const fb::Handoff &handoff = *plan.handoffs()->Get(i);
    edges.push_back({handoff.producer(), handoff.consumer(), handoff.slots()});
  }
  return edges;
}

} // namespace

PlanExecutor::PlanExecutor(std::shared_ptr<const PlanFile> file, const ExecutorOptions &options)
    : file_(std::move(file)), options_(options),
      flow_(file_->plan().stages()->size(), edgesOf(file_->plan()), file_->plan().max_sequences()),
      groups_(stateGroups(file_->plan())),
      timelines_(std::make_unique<Timeline[]>(flow_.timelines())) {}

Result<std::unique_ptr<PlanExecutor>> PlanExecutor::create(std::shared_ptr<const PlanFile> file,
                                                           const ExecutorOptions &options) {
  std::unique_ptr<PlanExecutor> executor(new PlanExecutor(std::move(file), options));
  if (Status status = executor->boot(); !status.isOk())
    return std::move(status).at("plan", executor->file_->path());
  return executor;
}

PlanExecutor::~PlanExecutor() {
  for (const auto &device : devices_)
    device->stop();
  for (uint32_t i = 0; i < flow_.timelines(); ++i)
    timelines_[i].close();
  // What has not stalled ends in its time; what has may touch its memory for ever.
  auto patience = hasStalled_ ? std::chrono::milliseconds(500) : options_.stall;
  bool rests = true;
  for (const auto &device : devices_)
    rests &= device->rests(patience);
  if (rests)
    return;
  struct Left {
    std::shared_ptr<const PlanFile> file;
    std::unique_ptr<Timeline[]> timelines;
    std::vector<std::unique_ptr<Device>> devices;
    std::vector<std::unique_ptr<Stage>> stages;
    std::vector<Channel> channels;
  };
  // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): without memory the process ends anyway
  (void)new Left{std::move(file_), std::move(timelines_), std::move(devices_), std::move(stages_),
                 std::move(channels_)};
}

Status PlanExecutor::boot() {
  const fb::Plan &plan = file_->plan();
  if (options_.randomWeightsSeed && plan.weights_place() != fb::WeightsPlace::None)
    return makeError(StatusCode::InvalidArgument,
                     "random weights (--random-weights) fill a plan without weights, but this one "
                     "has its own; leave the seed out");
  for (const fb::Stage *stage : *plan.stages())
    STRATA_RETURN_IF_ERROR(Stage::check(plan, *stage));
  STRATA_RETURN_IF_ERROR(countBlocks());
  STRATA_RETURN_IF_ERROR(takeDevices());
  STRATA_RETURN_IF_ERROR(takeRings());
  for (uint32_t i = 0; i < plan.stages()->size(); ++i) {
    STRATA_ASSIGN_OR_RETURN(auto stage,
                            Stage::load(*file_, i, *devices_[i],
                                        {.rings = rings_,
                                         .blockCounts = blockCounts_,
                                         .randomWeightsSeed = options_.randomWeightsSeed,
                                         .period = flow_.period(i),
                                         .keepOperands = bool(options_.observer)}));
    stages_.push_back(std::move(stage));
  }
  STRATA_RETURN_IF_ERROR(openChannels());
  for (const auto &device : devices_)
    device->lock();
  return {};
}

Status PlanExecutor::takeDevices() {
  const auto &stages = *file_->plan().stages();
  CpuDevice::Options options{.workers = options_.threads, .depth = launchesInFlight(stages.size())};
  if (options.workers == 0)
    options.workers = std::max(1u, std::thread::hardware_concurrency() / stages.size());
  STRATA_ASSIGN_OR_RETURN(std::vector<std::string> names, deviceNames());
  constexpr uint32_t host = UINT32_MAX;
  std::vector<uint32_t> gpus(stages.size(), host);
  for (uint32_t i = 0; i < stages.size(); ++i) {
    if (names[i] == "cpu")
      continue;
    STRATA_ASSIGN_OR_RETURN(cuda::GpuInfo gpu, cuda::findGpu(names[i]));
    gpus[i] = gpu.index;
  }
  // A stage's last kernel stores into the next one's ring.
  for (const Flow::Edge &edge : flow_.edges())
    if (gpus[edge.producer] != gpus[edge.consumer])
      return makeError(StatusCode::Unimplemented,
                       "stages on '{}' and '{}' cannot hand rows to one another yet; put all "
                       "stages on CPUs or on one GPU",
                       names[edge.producer], names[edge.consumer]);
  for (uint32_t i = 0; i < stages.size(); ++i) {
    std::string_view target = text(stages.Get(i)->target());
    std::string name = stages.size() == 1 ? names[i] : fmt::format("{} {}", names[i], i);
    if (gpus[i] != host) {
      STRATA_ASSIGN_OR_RETURN(auto device,
                              cuda::createCudaDevice(std::move(name), gpus[i], target,
                                                     {.depth = options.depth,
                                                      .workers = file_->plan().max_head_rows(),
                                                      .useGraphs = options_.useGraphs}));
      devices_.push_back(std::move(device));
      continue;
    }
    STRATA_ASSIGN_OR_RETURN(auto device, CpuDevice::create(std::move(name), target, options));
    if (options_.observer)
      device->observe([this, i](LineId line, uint32_t command) {
        const Stage &stage = *stages_[i];
        options_.observer({i, stage.bucketOf(line), command, stage.operands(line, command)});
      });
    devices_.push_back(std::move(device));
    if (options_.wrapDevice)
      devices_[i] = options_.wrapDevice(i, std::move(devices_[i]));
  }
  return {};
}

// What the options name, one a stage, else what the plan was made for.
Result<std::vector<std::string>> PlanExecutor::deviceNames() const {
  const auto &stages = *file_->plan().stages();
  std::vector<std::string> names = options_.devices;
  if (!names.empty() && names.size() != stages.size())
    return makeError(StatusCode::InvalidArgument,
                     "{} devices are named for a plan of {} stages; name one a stage, the same "
                     "several times if need be",
                     names.size(), stages.size());
  uint32_t gpus = 0;
  for (uint32_t i = 0; i < stages.size(); ++i) {
    std::string_view target = text(stages.Get(i)->target());
    bool isCpu = target.starts_with("cpu:");
    if (names.size() <= i)
      names.push_back(isCpu ? std::string("cpu") : fmt::format("cuda:{}", gpus++));
    if ((names[i] == "cpu") != isCpu)
      return makeError(StatusCode::InvalidArgument,
                       "stage '{}' was compiled for {} and cannot run on '{}'",
                       text(stages.Get(i)->name()), target, names[i]);
  }
  return names;
}

// The promise, or what the options ask for; a lone sequence of max_context tokens always fits.
Status PlanExecutor::countBlocks() {
  const fb::Plan &plan = file_->plan();
  if (options_.sequences > plan.max_sequences())
    return makeError(
        StatusCode::InvalidArgument,
        "state for {} sequences was asked for but the plan has room for {}; compile with "
        "a larger --max-seqs",
        options_.sequences, plan.max_sequences());
  for (const fb::StateGroup *group : groups_) {
    // A window's table is wider than the blocks that a sequence holds at once.
    uint64_t perSequence = group->kind() == fb::StateKind::Window
                               ? ceilDiv(group->promised_blocks(), plan.max_sequences())
                               : group->blocks_per_sequence();
    uint64_t blocks = group->promised_blocks();
    if (options_.sequences > 0)
      blocks = perSequence * options_.sequences;
    if (options_.kvTokens > 0 && group->kind() == fb::StateKind::Paged) {
      uint64_t asked = ceilDiv(options_.kvTokens, group->block_tokens());
      blocks = std::max(options_.sequences > 0 ? blocks : perSequence, asked);
    }
    if (blocks > uint64_t(INT32_MAX))
      return makeError(StatusCode::InvalidArgument,
                       "state '{}' would have {} blocks; {} can be numbered", text(group->name()),
                       blocks, INT32_MAX);
    blockCounts_.push_back(uint32_t(blocks));
  }
  return {};
}

Status PlanExecutor::takeRings() {
  const auto *handoffs = file_->plan().handoffs();
  for (uint32_t i = 0; i < count(handoffs); ++i) {
    const fb::Handoff &handoff = *handoffs->Get(i);
    uint64_t bytes = handoff.slot_bytes() * handoff.slots();
    STRATA_ASSIGN_OR_RETURN(std::byte * base,
                            devices_[handoff.consumer()]->allocate(
                                fmt::format("handoff '{}'", text(handoff.name())), bytes));
    rings_.emplace_back(base, bytes);
  }
  return {};
}

Status PlanExecutor::openChannels() {
  const fb::Plan &plan = file_->plan();
  uint32_t depth = launchesInFlight(flow_.stages());
  check_.emplace(plan, blockCounts_);
  legs_.resize(flow_.stages());
  progress_.resize(flow_.stages());
  since_.resize(flow_.stages());
  pending_.resize(depth);
  for (Pending &pending : pending_)
    pending.runs = std::make_unique<bool[]>(flow_.stages());
  if (flow_.returnsIds())
    for (uint32_t slot = 0; slot < flow_.edges()[flow_.idsEdge()].slots; ++slot) {
      Result<std::byte *> ids =
          devices_.front()->allocateHost("the sampled ids", plan.max_sequences() * sizeof(int32_t));
      if (!ids.isOk())
        return std::move(ids).status().at("stage", stages_.front()->name());
      ids_.emplace_back(reinterpret_cast<int32_t *>(*ids), plan.max_sequences());
    }
  size_t gates = 2 * flow_.edges().size() + 1; // a leg has no more than all of them
  for (Flow::Leg &leg : legs_) {
    leg.waits.reserve(gates);
    leg.signals.reserve(gates);
  }
  channels_.resize(flow_.stages());
  for (uint32_t i = 0; i < flow_.stages(); ++i) {
    if (Status status = openChannel(i, depth); !status.isOk())
      return std::move(status).at("stage", stages_[i]->name());
    for (DeviceLaunch &launch : channels_[i].launches) {
      launch.waits.reserve(gates);
      launch.signals.reserve(gates);
      launch.copiesIn.reserve(3 + plan.max_sequences() * SequenceTable::copiesPerStart +
                              2 * maxStateMoves);
      launch.copiesOut.reserve(2);
    }
  }
  Device &head = *devices_.back();
  uint64_t logitBytes = uint64_t(plan.max_head_rows()) * plan.vocabulary_size() * sizeof(float);
  if (!head.sharesHostMemory()) {
    STRATA_ASSIGN_OR_RETURN(std::byte * logits, head.allocateHost("logits", logitBytes));
    logitsCopy_ = {reinterpret_cast<float *>(logits), logitBytes / sizeof(float)};
  }
  return {};
}

Status PlanExecutor::openChannel(uint32_t stage, uint32_t depth) {
  const StageMemory &memory = stages_[stage]->memory();
  Channel &channel = channels_[stage];
  Device &device = *devices_[stage];
  for (uint32_t i = 0; i < depth; ++i) {
    STRATA_ASSIGN_OR_RETURN(std::byte * step,
                            device.allocateHost("a step block", memory.step.size()));
    STRATA_ASSIGN_OR_RETURN(std::byte * out,
                            device.allocateHost("an out block", memory.out.size()));
    channel.steps.push_back(step);
    channel.outs.push_back(out);
  }
  STRATA_ASSIGN_OR_RETURN(channel.clearedOut,
                          device.allocateHost("an out block", memory.out.size()));
  stages_[stage]->out().clear(channel.clearedOut);
  channel.starts.assign(depth, std::vector<SequenceTable::Staged>(file_->plan().max_sequences()));
  channel.launches.resize(depth);
  return {};
}

Result<std::span<const float>> PlanExecutor::logits() {
  if (logits_.empty() || logitsCopy_.empty())
    return logits_;
  std::span<float> copy = logitsCopy_.first(logits_.size());
  STRATA_RETURN_IF_ERROR(devices_.back()->read(
      std::as_writable_bytes(copy), reinterpret_cast<const std::byte *>(logits_.data())));
  return std::span<const float>(copy);
}

uint64_t PlanExecutor::takenBytes() const {
  uint64_t bytes = 0;
  for (const auto &device : devices_)
    bytes += device->takenBytes();
  return bytes;
}

// A command only if the device is at one of this very launch: what another runs is not at fault.
Status PlanExecutor::placed(Status status, uint32_t stage, const Pending &pending) const {
  const DeviceLaunch &launch = channels_[stage].launches[pending.number % pending_.size()];
  DeviceActivity activity = devices_[stage]->activity();
  if (activity.kind == DeviceActivity::Kind::Running && activity.launch == &launch) {
    std::string_view op = devices_[stage]->op(launch.line, activity.index);
    Status named = std::move(status).at("command", fmt::format("{}: {}", activity.index, op));
    status = std::move(named);
  }
  std::string_view bucket = text(file_->plan().buckets()->Get(pending.bucket)->name());
  return std::move(status).at("forward", bucket).at("stage", stages_[stage]->name());
}

Status PlanExecutor::fail(Status status) {
  hasFailed_ = true;
  return status;
}

Status PlanExecutor::submit(const Step &step) {
  if (hasFailed_)
    return makeError(StatusCode::FailedPrecondition,
                     "an earlier launch failed; the process has to be started again");
  STRATA_RETURN_IF_ERROR(check_->step(step));
  if (flow_.isFull())
    return makeError(StatusCode::Internal, "{} launches are out, which is all that may be",
                     flow_.inFlight());
  const fb::Bucket &bucket = *file_->plan().buckets()->Get(step.bucket);
  auto place = uint32_t(submitted_ % pending_.size());
  Pending &pending = pending_[place];
  pending.number = submitted_;
  pending.bucket = step.bucket;
  pending.rows = step.validRows;
  pending.sequences = step.validSequences;
  pending.headRows = step.validHeadRows;
  for (uint32_t i = 0; i < stages(); ++i)
    pending.runs[i] = stages_[i]->hasForward(step.bucket);
  flow_.submit(step, {bucket.body(), bucket.head()}, {pending.runs.get(), stages()}, legs_);
  ++submitted_;
  logits_ = {};
  for (uint32_t i = 0; i < stages(); ++i) {
    if (!legs_[i].runs)
      continue;
    fillLaunch(i, place, step);
    if (Status status = devices_[i]->enqueue(channels_[i].launches[place]); !status.isOk())
      return fail(placed(std::move(status), i, pending));
  }
  return {};
}

void PlanExecutor::fillLaunch(uint32_t index, uint32_t place, const Step &step) {
  const Stage &stage = *stages_[index];
  const StageMemory &memory = stage.memory();
  const Flow::Leg &leg = legs_[index];
  Channel &channel = channels_[index];
  DeviceLaunch &launch = channel.launches[place];
  launch.line = stage.line(step.bucket, leg.handoffNumber);
  launch.counts = {step.validRows, step.validSequences, step.validHeadRows};
  launch.waits.clear();
  for (const Flow::Gate &gate : leg.waits)
    launch.waits.push_back({&timelines_[gate.timeline], gate.value});
  launch.signals.clear();
  for (const Flow::Gate &gate : leg.signals)
    launch.signals.push_back({&timelines_[gate.timeline], gate.value});

  stage.step().write(step, leg.handoffNumber, channel.steps[place]);
  launch.copiesIn.clear();
  launch.copiesIn.push_back({memory.step.data(), channel.steps[place], memory.step.size()});
  for (size_t i = 0; i < step.starts.size(); ++i)
    stage.table().start(step.starts[i], memory.table.data(), channel.starts[place][i],
                        launch.copiesIn);
  for (const StateMove &move : step.moves)
    stage.move(move, launch.copiesIn);
  launch.copiesOut.clear();
  if (!memory.out.empty()) {
    launch.copiesIn.push_back({memory.out.data(), channel.clearedOut, memory.out.size()});
    launch.copiesOut.push_back({channel.outs[place], memory.out.data(), memory.out.size()});
  }
  std::span<std::byte> last = std::as_writable_bytes(stage.lastIds());
  if (leg.idsFrom >= 0 && !last.empty())
    launch.copiesIn.push_back(
        {last.data(), std::as_bytes(std::span(ids_[leg.idsFrom])).data(), last.size()});
  if (leg.idsTo >= 0 && !last.empty())
    launch.copiesOut.push_back(
        {std::as_writable_bytes(std::span(ids_[leg.idsTo])).data(), last.data(), last.size()});
}

Status PlanExecutor::wait(StepResult &result) {
  if (hasFailed_)
    return makeError(StatusCode::FailedPrecondition,
                     "an earlier launch failed; the process has to be started again");
  if (flow_.inFlight() == 0)
    return makeError(StatusCode::FailedPrecondition, "no launch is out");
  auto place = uint32_t(retired_ % pending_.size());
  const Pending &pending = pending_[place];
  const fb::Bucket &bucket = *file_->plan().buckets()->Get(pending.bucket);
  STRATA_RETURN_IF_ERROR(check_->result(result, pending.sequences, pending.headRows));
  std::fill_n(result.nonfiniteLayer.begin(), pending.sequences, -1);
  for (uint32_t i = 0; i < stages(); ++i) {
    if (!pending.runs[i])
      continue;
    STRATA_RETURN_IF_ERROR(awaitStage(i, pending, channels_[i].launches[place].signals.back()));
    stages_[i]->out().readNonfinite(channels_[i].outs[place], pending.sequences, result);
  }
  flow_.retire();
  ++retired_;
  logits_ = {};
  if (!bucket.head())
    return {};
  const Stage &head = *stages_.back();
  head.out().readHead(channels_.back().outs[place], pending.headRows, result);
  if (const float *logits = head.logits(pending.bucket); logits && flow_.inFlight() == 0)
    logits_ = {logits, size_t(pending.headRows) * file_->plan().vocabulary_size()};
  return {};
}

} // namespace strata
