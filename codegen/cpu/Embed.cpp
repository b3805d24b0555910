// embed.<type>: rows of the token table become F32.
#include "codegen/cpu/Families.h"

namespace strata::cpu::STRATA_ISA_NAMESPACE {
namespace {

enum Slot { Table, Y, RowId, RowSequence, SequenceSlot, LastId, Width, Vocabulary, Scale };

/// Moves width * bytes per element once; bound by memory. An id outside the vocabulary (none passes
/// the engine) makes its row NaN, which the first norm then reports, rather than reading elsewhere.
template <class T> void embed(const uint64_t *slots, uint32_t begin, uint32_t end, uint32_t) {
  auto *table = pointerAt<const uint8_t>(slots, Table);
  auto *rowId = pointerAt<const int32_t>(slots, RowId);
  auto *rowSequence = pointerAt<const int32_t>(slots, RowSequence);
  auto *sequenceSlot = pointerAt<const int32_t>(slots, SequenceSlot);
  auto *lastId = pointerAt<const int32_t>(slots, LastId);
  uint64_t width = slots[Width], blocks = width / T::blockElements;
  float scale = realAt(slots, Scale);

  for (uint32_t row = begin; row < end; ++row) {
    float *y = pointerAt<float>(slots, Y) + row * width;
    int32_t id = rowId[row];
    if (id < 0)
      id = lastId[sequenceSlot[rowSequence[row]]];
    if (uint64_t(int64_t(id)) >= slots[Vocabulary]) {
      for (uint64_t i = 0; i < width; ++i)
        y[i] = __builtin_nanf("");
      continue;
    }
    const uint8_t *source = table + uint64_t(id) * blocks * T::blockBytes;
    for (uint64_t block = 0; block < blocks; ++block) {
      float values[T::blockElements];
      T::dequantise(source + block * T::blockBytes, values);
      for (uint32_t i = 0; i < T::blockElements; ++i)
        y[block * T::blockElements + i] = values[i] * scale;
    }
  }
}

template <class T> constexpr KernelName nameOf{"embed.", T::name};

template <class List> struct Entries;
template <class... T> struct Entries<std::tuple<T...>> {
  static constexpr KernelEntry list[] = {{nameOf<T>.view(), embed<T>}...};
};

} // namespace

KernelList embedKernels() {
  return {Entries<WeightTypeList>::list, std::tuple_size_v<WeightTypeList>};
}

} // namespace strata::cpu::STRATA_ISA_NAMESPACE
