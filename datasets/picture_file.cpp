#include "datasets/picture_file.h"

#include <png.h>
#include <turbojpeg.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <fstream>
#include <iterator>
#include <memory>

#include "profiling/base/failure.h"

namespace ws::data {
namespace {

constexpr int64_t kMostPixels = int64_t{1} << 26;  // a small file can claim any size
constexpr std::streamoff kMostBytes = int64_t{1} << 28;

std::vector<uint8_t> bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file ? static_cast<std::streamoff>(file.tellg()) : -1;
  if (size < 0) throw Failure("cannot be opened");
  if (size == 0) throw Failure("is empty");
  if (size > kMostBytes) throw Failure("is larger than 256 MiB");
  std::vector<uint8_t> bytes(static_cast<size_t>(size));
  file.seekg(0);
  if (!file.read(reinterpret_cast<char*>(bytes.data()), size)) throw Failure("cannot be read");
  return bytes;
}

Picture picture_of(int64_t width, int64_t height, int64_t channels) {
  if (width < 1 || height < 1) throw Failure("has no pixels");
  if (width * height > kMostPixels) throw Failure("has more than 67 million pixels");
  return {width, height, channels, std::vector<uint8_t>(static_cast<size_t>(width * height * channels))};
}

struct PngImage : png_image {
  PngImage() : png_image{} { version = PNG_IMAGE_VERSION; }
  ~PngImage() { png_image_free(this); }
  PngImage(const PngImage&) = delete;
  PngImage& operator=(const PngImage&) = delete;
};

Picture read_png(const std::vector<uint8_t>& bytes) {
  PngImage image;
  if (!png_image_begin_read_from_memory(&image, bytes.data(), bytes.size())) throw Failure(image.message);
  const bool colour = image.format & PNG_FORMAT_FLAG_COLOR;
  Picture picture = picture_of(image.width, image.height, colour ? 3 : 1);
  image.format = colour ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  const png_color white{255, 255, 255};
  if (!png_image_finish_read(&image, &white, picture.values.data(), 0, nullptr)) throw Failure(image.message);
  return picture;
}

struct EndJpeg {
  void operator()(void* decoder) const { tjDestroy(decoder); }
};

Picture read_jpeg(const std::vector<uint8_t>& bytes) {
  const std::unique_ptr<void, EndJpeg> decoder(tjInitDecompress());
  if (!decoder) throw Failure("cannot be decoded: there is not enough memory");
  int width = 0, height = 0, sampling = 0, space = 0;
  const auto size = static_cast<unsigned long>(bytes.size());
  if (tjDecompressHeader3(decoder.get(), bytes.data(), size, &width, &height, &sampling, &space) != 0)
    throw Failure(tjGetErrorStr2(decoder.get()));
  if (space == TJCS_CMYK || space == TJCS_YCCK) throw Failure("has printing colours (CMYK); save it as RGB");
  const bool grey = space == TJCS_GRAY;
  Picture picture = picture_of(width, height, grey ? 1 : 3);
  if (tjDecompress2(decoder.get(), bytes.data(), size, picture.values.data(), width, 0, height,
                    grey ? TJPF_GRAY : TJPF_RGB, TJFLAG_STOPONWARNING) != 0)
    throw Failure(tjGetErrorStr2(decoder.get()));
  return picture;
}

// The part of the axis that a pixel of the result covers.
struct Reach {
  double from, to;
  int64_t first() const { return static_cast<int64_t>(from); }
  int64_t end(int64_t size) const { return std::min(size, static_cast<int64_t>(std::ceil(to))); }
  double share(int64_t pixel) const {
    return std::min(to, static_cast<double>(pixel + 1)) - std::max(from, static_cast<double>(pixel));
  }
};

}  // namespace

bool is_picture_name(std::string_view path) {
  const size_t dot = path.rfind('.');
  if (dot == path.npos) return false;
  std::string ending(path.substr(dot + 1));
  std::ranges::transform(ending, ending.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return ending == "png" || ending == "jpg" || ending == "jpeg";
}

// The first bytes decide, since many files have the wrong ending.
Picture read_picture(const std::string& path) {
  const std::vector<uint8_t> bytes = bytes_of(path);
  constexpr uint8_t png[] = {0x89, 'P', 'N', 'G'}, jpeg[] = {0xff, 0xd8};
  const auto begins = [&](const auto& mark) {
    return bytes.size() >= std::size(mark) && std::equal(std::begin(mark), std::end(mark), bytes.begin());
  };
  if (begins(png)) return read_png(bytes);
  if (begins(jpeg)) return read_jpeg(bytes);
  throw Failure("is no PNG or JPEG file");
}

Picture square(const Picture& from, int64_t side) {
  const int64_t cut = std::min(from.width, from.height), left = (from.width - cut) / 2, top = (from.height - cut) / 2;
  Picture to{side, side, from.channels, std::vector<uint8_t>(static_cast<size_t>(side * side * from.channels))};
  const double scale = static_cast<double>(cut) / static_cast<double>(side);
  const auto reach = [&](int64_t at) {
    return Reach{static_cast<double>(at) * scale, static_cast<double>(at + 1) * scale};
  };
  for (int64_t y = 0; y < side; ++y)
    for (int64_t x = 0; x < side; ++x)
      for (int64_t c = 0; c < from.channels; ++c) {
        const Reach rows = reach(y), columns = reach(x);
        double sum = 0;
        for (int64_t v = rows.first(); v < rows.end(cut); ++v)
          for (int64_t u = columns.first(); u < columns.end(cut); ++u)
            sum += rows.share(v) * columns.share(u) *
                   from.values[static_cast<size_t>(((top + v) * from.width + left + u) * from.channels + c)];
        to.values[static_cast<size_t>((y * side + x) * from.channels + c)] =
            static_cast<uint8_t>(std::clamp(std::lround(sum / (scale * scale)), 0L, 255L));
      }
  return to;
}

Picture coloured(Picture picture) {
  if (picture.channels == 3) return picture;
  std::vector<uint8_t> values;
  values.reserve(picture.values.size() * 3);
  for (const uint8_t value : picture.values) values.insert(values.end(), 3, value);
  return {picture.width, picture.height, 3, std::move(values)};
}

}  // namespace ws::data
