// A network as a list of layers: the line that a person writes, and the shapes that the layers make of a row of data.
//
//   conv 3x3 16 | relu | maxpool 2 | conv 3x3 32 | relu | maxpool 2 | linear
//   embed 128 | 4 x block(heads 4) | layernorm | linear
#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "engine/plan/run_spec.h"

namespace ws {

enum class LayerKind : uint8_t {
  Linear,
  Conv,
  MaxPool,
  AvgPool,
  BatchNorm,
  LayerNorm,
  Activate,
  Dropout,
  Embed,
  Attention,
  Residual,  // its layers, plus their input
  Block,     // a transformer block: residual(layernorm | attention) | residual(layernorm | linear x4 | gelu | linear)
  Group,     // layers in parentheses, to repeat them
  Branch,    // only in a resolved network: the input of a residual is kept
  Join,      // only in a resolved network: the kept input is added
};

struct Layer {
  LayerKind kind = LayerKind::Linear;
  int64_t width = 0;   // linear: outputs, 0 for as many as the data set has; conv: channels; embed: values of a symbol
  int64_t factor = 0;  // linear: outputs for each input instead of a width
  int64_t window_h = 0, window_w = 0, stride = 1, pad = 0;  // a window of 0 is the whole picture
  bool may_leave_rows = false;  // the person chose stride or padding, so the window need not divide the picture
  int64_t heads = 0;
  Activation activation = Activation::None;
  double rate = 0;        // share that dropout sets to zero
  bool bias = true;       // linear, conv, attention
  bool positions = true;  // embed: adds a learned vector for each position
  int64_t times = 1;
  std::vector<Layer> body;    // residual, block, group
  size_t at = 0, length = 0;  // its place in the text
};

// What is wrong with a list, as one sentence, and where.
class LayersError : public SpecError {
 public:
  LayersError(const std::string& sentence, size_t where, size_t letters)
      : SpecError(sentence), at(where), length(letters) {}
  size_t at, length;
};

std::vector<Layer> parse_layers(std::string_view text);  // throws LayersError
std::string text_of(const Layer& layer);                 // "conv 3x3 16", as a person writes it
std::string_view to_string(LayerKind kind);              // "conv"; "activation" for all of them
// The list of a model: model.layers, or the layers of its short form model.hidden. Throws LayersError.
std::vector<Layer> layers_of(const ModelSpec& model);
// True if one of the kinds is in the list, at any depth. A list that cannot be read has none.
bool has_layer(const ModelSpec& model, std::initializer_list<LayerKind> kinds);
// The layers that attend, and those that work on pictures only.
inline constexpr std::initializer_list<LayerKind> kAttendingLayers = {LayerKind::Attention, LayerKind::Block};
inline constexpr std::initializer_list<LayerKind> kPictureLayers = {LayerKind::Conv, LayerKind::MaxPool, LayerKind::AvgPool};

// The shape of a row of data on its way through the network.
struct LayerShape {
  int64_t height = 0, width = 0, channels = 0;  // a picture
  int64_t time = 0;                             // symbols of a text
  int64_t features = 0;                         // values of the row, or of each symbol; 0 for symbols by number

  LayerShape() = default;
  LayerShape(int64_t values) : features(values) {}
  static LayerShape picture(int64_t height, int64_t width, int64_t channels);
  static LayerShape symbols(int64_t time);
  bool is_picture() const { return height > 0; }
  bool is_text() const { return time > 0; }
  bool is_symbols() const { return time > 0 && features == 0; }
  int64_t rows() const { return is_picture() ? height * width : is_text() ? time : 1; }  // rows of its matrix
  int64_t cols() const { return is_picture() ? channels : is_symbols() ? 1 : features; }
  int64_t elements() const { return rows() * cols(); }
  bool operator==(const LayerShape&) const = default;
};
std::string text_of(const LayerShape& shape);  // "28 × 28 × 16"

// One layer of the flat network, with every choice made.
struct NetworkLayer {
  Layer layer;
  LayerShape in, out;
  std::string name;  // "conv1"; an activation, a dropout or a sum has the name of the layer before it
  int number = 0;    // index into the plan's layer names
  std::string part;  // "block 2", "residual 1"; empty outside of them
  int depth = 0;     // blocks and residuals around it
};

// Throws LayersError if a layer cannot take what the layer before it gives. `outputs`: classes, symbols or numbers that
// the data set asks for.
std::vector<NetworkLayer> resolve(const std::vector<Layer>& layers, LayerShape input, int64_t outputs);

}  // namespace ws
