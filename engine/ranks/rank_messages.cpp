#include "engine/ranks/rank_messages.h"

#include "profiling/base/byte_reader.h"

namespace ws {
namespace {

constexpr const char* kFrom = "a message of a rank";

// Without padding, so that no undefined bytes travel.
struct GradientHead {
  double share = 0;
  uint32_t element_bytes = 0, tensors = 0;
};

template <class Real>
std::string encode_gradients(double share, const cpu::RankAverage::Tensors<Real>& tensors) {
  ByteWriter out;
  out.value(GradientHead{share, sizeof(Real), static_cast<uint32_t>(tensors.size())});
  for (const auto& tensor : tensors) out.value(uint64_t{tensor.size()});
  for (const auto& tensor : tensors) out.raw({reinterpret_cast<const char*>(tensor.data()), tensor.size_bytes()});
  return out.take();
}

template <class Real>
std::string average_values(int rank, const GradientHead& head, ByteReader in, cpu::RankAverage& average) {
  std::vector<uint64_t> sizes(head.tensors);
  for (uint64_t& size : sizes) size = in.value<uint64_t>("a size");
  std::string values(in.raw(in.left(), "the gradients"));
  cpu::RankAverage::Tensors<Real> tensors;
  size_t at = 0;
  for (const uint64_t size : sizes) {
    if (size > (values.size() - at) / sizeof(Real)) in.fail("holds fewer gradients than it says");
    tensors.emplace_back(reinterpret_cast<Real*>(values.data() + at), size);
    at += size * sizeof(Real);
  }
  average.average(rank, head.share, tensors);
  return values;
}

constexpr auto kState = [](auto& f, auto& state) {
  f("the state", state.step, state.loss_scale, state.good_steps);
  for (auto* tensors : {&state.parameters, &state.moments[0], &state.moments[1]})
    f.each(sizeof(uint64_t), "the tensors", *tensors, [&](auto& tensor) { f("a tensor", tensor); });
};

}  // namespace

std::string encode(const RankRequest& request) {
  ByteWriter out;
  out.text(spec_text(request.spec)), out.text(request.nccl_id);
  return out.take();
}

RankRequest decode_request(std::string_view bytes) {
  ByteReader in(bytes, kFrom);
  RankRequest request;
  request.spec = parse_spec(in.text("the choices"));
  request.nccl_id = in.text("the NCCL id");
  return request;
}

std::string encode(const TrainState& state) { return bytes_with(state, kState); }
TrainState decode_state(std::string_view bytes) { return whole_from<TrainState>(bytes, kFrom, kState); }

std::string encode(double share, const cpu::RankAverage::Tensors<float>& tensors) {
  return encode_gradients(share, tensors);
}
std::string encode(double share, const cpu::RankAverage::Tensors<double>& tensors) {
  return encode_gradients(share, tensors);
}

std::string average_for(int rank, std::string_view bytes, cpu::RankAverage& average) {
  ByteReader in(bytes, kFrom);
  const auto head = in.value<GradientHead>("the head");
  return head.element_bytes == sizeof(double) ? average_values<double>(rank, head, in, average)
                                              : average_values<float>(rank, head, in, average);
}

}  // namespace ws
