#include "engine/cpu/prepare_pictures.h"

#include "engine/cpu/cores.h"

namespace ws::cpu {

template <class Real>
void prepare(const Preparation& how, const Window& pictures, uint64_t seed, int64_t step, Matrix<Real> x,
             Matrix<Real> y) {
  const int64_t size = pictures.h * pictures.w * pictures.c;
  share_range(pictures.n, least_rows(size), [&](int64_t first, int64_t end) {
    for (int64_t row = first; row < end; ++row) {
      const PicturePlace place = how.is_random() ? place_of(how, seed, step, row) : PicturePlace{};
      const auto picture = [from = x.data + row * size](int64_t i) { return from[i]; };
      Real* to = y.data + row * size;
      for (int64_t v = 0; v < pictures.h; ++v)
        for (int64_t u = 0; u < pictures.w; ++u)
          for (int64_t channel = 0; channel < pictures.c; ++channel)
            *to++ = prepared_value<Real>(how, place, pictures.h, pictures.w, pictures.c, v, u, channel, picture);
    }
  });
}

template void prepare(const Preparation&, const Window&, uint64_t, int64_t, Matrix<float>, Matrix<float>);
template void prepare(const Preparation&, const Window&, uint64_t, int64_t, Matrix<double>, Matrix<double>);

}  // namespace ws::cpu
