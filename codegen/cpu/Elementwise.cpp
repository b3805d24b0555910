// gated, activation, add, copy_rows and gather_rows: one pass over each row, bound by memory.
#include "codegen/cpu/Functions.h"

namespace strata::cpu::STRATA_ISA_NAMESPACE {
namespace {

template <class Function>
void gated(const uint64_t *slots, uint32_t begin, uint32_t end, uint32_t) {
  enum { Gate, Up, Y, Width };
  uint64_t start = begin * slots[Width];
  const float *gate = pointerAt<const float>(slots, Gate) + start;
  const float *up = pointerAt<const float>(slots, Up) + start;
  float *y = pointerAt<float>(slots, Y) + start;
  forEachPiece((end - begin) * slots[Width], [&](uint64_t first, uint32_t count) {
    Lanes value = Function::apply(loadPiece(gate + first, count));
    storePiece(y + first, value * loadPiece(up + first, count), count);
  });
}

template <class Function>
void activation(const uint64_t *slots, uint32_t begin, uint32_t end, uint32_t) {
  enum { X, Y, Width };
  uint64_t start = begin * slots[Width];
  const float *x = pointerAt<const float>(slots, X) + start;
  float *y = pointerAt<float>(slots, Y) + start;
  forEachPiece((end - begin) * slots[Width], [&](uint64_t first, uint32_t count) {
    storePiece(y + first, Function::apply(loadPiece(x + first, count)), count);
  });
}

template <class Function>
void rowGated(const uint64_t *slots, uint32_t begin, uint32_t end, uint32_t) {
  enum { Gate, X, Y, Width };
  uint64_t width = slots[Width];
  for (uint32_t row = begin; row < end; ++row) {
    Lanes gate = splat(firstOf(Function::apply(splat(pointerAt<const float>(slots, Gate)[row]))));
    const float *x = pointerAt<const float>(slots, X) + row * width;
    float *y = pointerAt<float>(slots, Y) + row * width;
    forEachPiece(width, [&](uint64_t first, uint32_t count) {
      storePiece(y + first, gate * loadPiece(x + first, count), count);
    });
  }
}

void add(const uint64_t *slots, uint32_t begin, uint32_t end, uint32_t) {
  enum { A, B, Y, Width };
  uint64_t start = begin * slots[Width];
  const float *a = pointerAt<const float>(slots, A) + start;
  const float *b = pointerAt<const float>(slots, B) + start;
  float *y = pointerAt<float>(slots, Y) + start;
  forEachPiece((end - begin) * slots[Width], [&](uint64_t first, uint32_t count) {
    storePiece(y + first, loadPiece(a + first, count) + loadPiece(b + first, count), count);
  });
}

void copyRows(const uint64_t *slots, uint32_t begin, uint32_t end, uint32_t) {
  enum { X, Y, Width };
  uint64_t start = begin * slots[Width];
  std::memcpy(pointerAt<float>(slots, Y) + start, pointerAt<const float>(slots, X) + start,
              (end - begin) * slots[Width] * sizeof(float));
}

void gatherRows(const uint64_t *slots, uint32_t begin, uint32_t end, uint32_t) {
  enum { X, Y, HeadRow, Width };
  uint64_t width = slots[Width];
  for (uint32_t row = begin; row < end; ++row) {
    auto from = uint64_t(pointerAt<const int32_t>(slots, HeadRow)[row]);
    std::memcpy(pointerAt<float>(slots, Y) + row * width,
                pointerAt<const float>(slots, X) + from * width, width * sizeof(float));
  }
}

template <class Function> constexpr KernelName gatedName{"gated.", Function::name};
template <class Function> constexpr KernelName activationName{"activation.", Function::name};

constexpr KernelEntry entries[] = {
    {gatedName<Silu>.view(), gated<Silu>},
    {gatedName<GeluTanh>.view(), gated<GeluTanh>},
    {activationName<Silu>.view(), activation<Silu>},
    {activationName<GeluTanh>.view(), activation<GeluTanh>},
    {activationName<Relu2>.view(), activation<Relu2>},
    {activationName<Sigmoid>.view(), activation<Sigmoid>},
    {"row_gated.sigmoid", rowGated<Sigmoid>},
    {"add", add},
    {"copy_rows", copyRows},
    {"gather_rows", gatherRows},
};

} // namespace

KernelList elementwiseKernels() { return {entries, sizeof entries / sizeof entries[0]}; }

} // namespace strata::cpu::STRATA_ISA_NAMESPACE
