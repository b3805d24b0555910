#include "test/runtime/plan/TinyPlan.h"

#include <algorithm>
#include <cmath>

namespace strata::test {
namespace {

using Row = std::vector<double>;

std::vector<float> randomValues(uint64_t &state, size_t elements, float centre, float spread) {
  std::vector<float> values(elements);
  for (float &value : values) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    value = centre + spread * (float(state >> 40) / float(1 << 23) - 1);
  }
  return values;
}

Row normalise(const Row &x, const std::vector<float> &weight) {
  double sum = 0;
  for (double value : x)
    sum += value * value;
  double scale = 1 / std::sqrt(sum / double(x.size()) + TinyModel::epsilon);
  Row y(x.size());
  for (size_t i = 0; i < x.size(); ++i)
    y[i] = x[i] * scale * double(weight[i]);
  return y;
}

Row multiply(const std::vector<float> &weight, const Row &x) {
  Row y(weight.size() / x.size());
  for (size_t o = 0; o < y.size(); ++o)
    for (size_t i = 0; i < x.size(); ++i)
      y[o] += double(weight[o * x.size() + i]) * x[i];
  return y;
}

Row attend(const Row &q, const std::vector<Row> &keys, const std::vector<Row> &values) {
  constexpr uint32_t width = TinyModel::headWidth;
  Row y(q.size());
  for (uint32_t head = 0; head < TinyModel::heads; ++head) {
    Row score(keys.size());
    for (size_t t = 0; t < keys.size(); ++t)
      for (uint32_t i = head * width; i < (head + 1) * width; ++i)
        score[t] += q[i] * keys[t][i] / std::sqrt(double(width));
    double most = *std::max_element(score.begin(), score.end()), sum = 0;
    for (double &value : score)
      sum += value = std::exp(value - most);
    for (size_t t = 0; t < keys.size(); ++t)
      for (uint32_t i = head * width; i < (head + 1) * width; ++i)
        y[i] += score[t] / sum * values[t][i];
  }
  return y;
}

} // namespace

TinyModel::TinyModel(uint64_t seed) {
  uint64_t state = seed;
  embedding = randomValues(state, size_t(vocabulary) * hidden, 0, 1);
  finalNorm = randomValues(state, hidden, 1, 0.5f);
  for (uint32_t i = 0; i < layers; ++i) {
    Layer next;
    next.norm = randomValues(state, hidden, 1, 0.5f);
    for (auto *matrix : {&next.q, &next.k, &next.v, &next.o})
      *matrix = randomValues(state, size_t(hidden) * hidden, 0, 0.4f);
    layer.push_back(std::move(next));
  }
}

std::vector<std::vector<double>> TinyModel::logits(const std::vector<int32_t> &ids) const {
  std::vector<std::vector<double>> result;
  std::vector<std::vector<Row>> keys(layers), values(layers);
  for (int32_t id : ids) {
    auto begin = embedding.begin() + id * int64_t(hidden);
    Row x(begin, begin + hidden);
    for (uint32_t i = 0; i < layers; ++i) {
      Row n = normalise(x, layer[i].norm);
      keys[i].push_back(multiply(layer[i].k, n));
      values[i].push_back(multiply(layer[i].v, n));
      Row o = multiply(layer[i].o, attend(multiply(layer[i].q, n), keys[i], values[i]));
      for (size_t j = 0; j < x.size(); ++j)
        x[j] += o[j];
    }
    result.push_back(multiply(embedding, normalise(x, finalNorm)));
  }
  return result;
}

} // namespace strata::test
