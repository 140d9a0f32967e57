// Decodes PNG and JPEG pictures.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ws::data {

struct Picture {
  int64_t width = 0, height = 0, channels = 0;  // 1 channel: grey; 3: red, green, blue
  std::vector<uint8_t> values;                  // in the order row, column, channel
};

// True for .png, .jpg and .jpeg in any case.
bool is_picture_name(std::string_view path);

// Grey files give one channel. Transparent pixels lie on white. Throws Failure with the reason, without the file's
// name.
Picture read_picture(const std::string& path);

// The square in the middle of the picture, `side` pixels wide. Each pixel is the mean of the area that it covers.
Picture square(const Picture& picture, int64_t side);

Picture coloured(Picture picture);  // three channels

}  // namespace ws::data
