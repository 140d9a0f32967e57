#include "engine/plan/layers.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "profiling/base/text.h"

namespace ws {
namespace {

constexpr int64_t kMostWidth = 65536, kMostWindow = 64, kMostTimes = 256;
constexpr size_t kMostLayers = 4096, kMostText = 1 << 16;
constexpr int kMostDepth = 8;

struct Name {
  std::string_view word;
  LayerKind kind;
  Activation activation = Activation::None;
  std::string_view prefix{};  // of the layers' own names: "fc1"; empty: they have none
};
constexpr Name kNames[] = {
    {"linear", LayerKind::Linear, Activation::None, "fc"},
    {"conv", LayerKind::Conv, Activation::None, "conv"},
    {"maxpool", LayerKind::MaxPool, Activation::None, "pool"},
    {"avgpool", LayerKind::AvgPool, Activation::None, "pool"},
    {"batchnorm", LayerKind::BatchNorm, Activation::None, "bn"},
    {"layernorm", LayerKind::LayerNorm, Activation::None, "ln"},
    {"relu", LayerKind::Activate, Activation::Relu},
    {"sigmoid", LayerKind::Activate, Activation::Sigmoid},
    {"tanh", LayerKind::Activate, Activation::Tanh},
    {"gelu", LayerKind::Activate, Activation::Gelu},
    {"dropout", LayerKind::Dropout},
    {"embed", LayerKind::Embed, Activation::None, "embed"},
    {"attention", LayerKind::Attention, Activation::None, "attn"},
    {"residual", LayerKind::Residual},
    {"block", LayerKind::Block},
};

std::string all_names() {
  std::string text;
  for (const Name& name : kNames) text += (text.empty() ? "" : ", ") + std::string(name.word);
  return text;
}

std::string_view word_of(const Layer& layer) {
  for (const Name& name : kNames)
    if (name.kind == layer.kind && name.activation == layer.activation) return name.word;
  return "";
}

[[noreturn]] void fail(const Layer& at, const std::string& sentence) { throw LayersError(sentence, at.at, at.length); }

struct Word {
  std::string_view text;
  size_t at = 0;
};

std::optional<int64_t> whole_number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The words behind a layer's name. What a layer did not take is an error.
class Words {
 public:
  Words(Layer& layer, std::vector<Word> words) : layer_(layer), words_(std::move(words)) {}

  bool empty() const { return words_.empty(); }
  std::string_view front() const { return words_.empty() ? std::string_view() : words_.front().text; }

  Word take(const std::string& missing) {
    if (words_.empty()) fail(layer_, missing);
    const Word word = words_.front();
    words_.erase(words_.begin());
    return word;
  }

  // Removes the word; returns false if it is not there.
  bool flag(std::string_view wanted) {
    const auto found = std::ranges::find(words_, wanted, &Word::text);
    if (found == words_.end()) return false;
    words_.erase(found);
    return true;
  }

  // Removes "stride 2" and returns its number.
  std::optional<Word> option(std::string_view wanted) {
    const auto found = std::ranges::find(words_, wanted, &Word::text);
    if (found == words_.end()) return std::nullopt;
    if (found + 1 == words_.end()) bad(*found, std::string(wanted) + ": a value is missing");
    const Word value = *(found + 1);
    words_.erase(found, found + 2);
    return value;
  }

  int64_t number(const Word& word, int64_t least, int64_t most) const {
    const auto value = whole_number(word.text);
    if (!value || *value < least || *value > most)
      bad(word, "expected a whole number from " + std::to_string(least) + " to " + std::to_string(most) + ", got " +
                    std::string(word.text));
    return *value;
  }

  double share(const Word& word) const {
    double value = 0;
    const auto [end, error] = std::from_chars(word.text.data(), word.text.data() + word.text.size(), value);
    if (error != std::errc() || end != word.text.data() + word.text.size() || !(value >= 0 && value <= 0.95))
      bad(word, "expected a share from 0 to 0.95, got " + std::string(word.text));
    return value;
  }

  // "3x3", "3×3" or "3" as height and width.
  void window(const Word& word) const {
    size_t cross = word.text.find('x'), letters = 1;
    if (cross == word.text.npos) cross = word.text.find("×"), letters = std::string_view("×").size();
    if (cross == word.text.npos) {
      layer_.window_h = layer_.window_w = number(word, 1, kMostWindow);
      return;
    }
    layer_.window_h = number({word.text.substr(0, cross), word.at}, 1, kMostWindow);
    layer_.window_w = number({word.text.substr(cross + letters), word.at + cross + letters}, 1, kMostWindow);
  }

  void expect_none() const {
    if (!words_.empty())
      bad(words_.front(), std::string(word_of(layer_)) + ": \"" + std::string(words_.front().text) + "\" is not a part of it");
  }

 private:
  [[noreturn]] static void bad(const Word& word, const std::string& sentence) {
    throw LayersError(sentence, word.at, word.text.size());
  }

  Layer& layer_;
  std::vector<Word> words_;
};

void read_switch(Layer& layer, Words& words, const char* name, bool& on) {
  const auto value = words.option(name);
  if (!value) return;
  if (value->text != "on" && value->text != "off") fail(layer, std::string(name) + ": expected on or off, got " + std::string(value->text));
  on = value->text == "on";
}
void read_bias(Layer& layer, Words& words) { read_switch(layer, words, "bias", layer.bias); }

void read_linear(Layer& layer, Words& words) {
  read_bias(layer, words);
  if (words.empty()) return;
  const Word width = words.take("");
  if (width.text.starts_with("x"))
    layer.factor = words.number({width.text.substr(1), width.at + 1}, 1, 64);
  else
    layer.width = words.number(width, 1, kMostWidth);
}

// The padding of a layer that names none: with stride 1 the output of a conv is as large as its input.
std::optional<int64_t> usual_padding(const Layer& layer) {
  if (layer.kind != LayerKind::Conv) return 0;
  if (layer.window_h != layer.window_w || layer.window_h % 2 == 0) return std::nullopt;
  return layer.window_h / 2;
}
int64_t usual_stride(const Layer& layer) { return layer.kind == LayerKind::Conv ? 1 : layer.window_h; }

void read_steps(Layer& layer, Words& words) {
  const auto stride = words.option("stride"), pad = words.option("padding");
  const bool conv = layer.kind == LayerKind::Conv;
  if (!pad && !usual_padding(layer)) fail(layer, "conv: say the padding, as this window has no centre");
  layer.stride = stride ? words.number(*stride, 1, kMostWindow) : usual_stride(layer);
  layer.pad = pad ? words.number(*pad, 0, kMostWindow) : *usual_padding(layer);
  layer.may_leave_rows = stride || pad || conv;
  const int64_t most = conv ? std::min(layer.window_h, layer.window_w) - 1 : std::min(layer.window_h, layer.window_w) / 2;
  if (layer.pad > most && most >= 0)
    fail(layer, "padding " + std::to_string(layer.pad) + " is too wide for a window of " + std::to_string(layer.window_h) +
                    " x " + std::to_string(layer.window_w) + ": at most " + std::to_string(most));
}

void read_conv(Layer& layer, Words& words) {
  read_bias(layer, words);
  words.window(words.take("conv: say window and channels, as in conv 3x3 16"));
  read_steps(layer, words);
  layer.width = words.number(words.take("conv: say how many channels, as in conv 3x3 16"), 1, kMostWidth);
}

void read_pool(Layer& layer, Words& words) {
  if (words.flag("global") || (layer.kind == LayerKind::AvgPool && words.empty())) return;
  words.window(words.take(std::string(word_of(layer)) + ": say the window, as in " + std::string(word_of(layer)) + " 2"));
  read_steps(layer, words);
}

void read_heads(Layer& layer, Words& words) {
  const std::string missing = std::string(word_of(layer)) + ": say how many heads, as in " + std::string(word_of(layer)) +
                              (layer.kind == LayerKind::Block ? "(heads 4)" : " heads 4");
  const auto heads = words.option("heads");
  layer.heads = words.number(heads ? *heads : words.take(missing), 1, 1024);
}

void read_embed(Layer& layer, Words& words) {
  read_switch(layer, words, "positions", layer.positions);
  layer.width = words.number(words.take("embed: say the width, as in embed 128"), 1, kMostWidth);
}

void read_words(Layer& layer, Words words) {
  switch (layer.kind) {
    case LayerKind::Linear:
      read_linear(layer, words);
      break;
    case LayerKind::Conv:
      read_conv(layer, words);
      break;
    case LayerKind::MaxPool:
    case LayerKind::AvgPool:
      read_pool(layer, words);
      break;
    case LayerKind::Dropout:
      layer.rate = words.share(words.take("dropout: say the share, as in dropout 0.1"));
      break;
    case LayerKind::Embed:
      read_embed(layer, words);
      break;
    case LayerKind::Attention:
      read_bias(layer, words);
      read_heads(layer, words);
      break;
    case LayerKind::Block:
      read_bias(layer, words);
      if (const auto rate = words.option("dropout")) layer.rate = words.share(*rate);
      read_heads(layer, words);
      break;
    default:
      break;  // the other layers are one word
  }
  words.expect_none();
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  std::vector<Layer> whole() {
    std::vector<Layer> layers = list(0);
    if (at_ < text_.size()) bad("this parenthesis was never opened", at_, 1);
    return layers;
  }

 private:
  [[noreturn]] static void bad(const std::string& sentence, size_t at, size_t length) {
    throw LayersError(sentence, at, length);
  }
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  bool next_is(char c) {
    skip_space();
    return at_ < text_.size() && text_[at_] == c;
  }
  bool take(char c) {
    if (!next_is(c)) return false;
    ++at_;
    return true;
  }
  void close(size_t opened) {
    if (!take(')')) bad("this parenthesis is not closed", opened, 1);
  }

  Word word() {
    skip_space();
    const size_t begin = at_;
    while (at_ < text_.size() && std::string_view(" \n\t|(),").find(text_[at_]) == std::string_view::npos) ++at_;
    return {text_.substr(begin, at_ - begin), begin};
  }

  std::vector<Word> words() {
    std::vector<Word> all;
    while (true) {
      take(',');
      const Word next = word();
      if (next.text.empty()) return all;
      all.push_back(next);
    }
  }

  std::vector<Layer> list(int depth) {
    std::vector<Layer> layers;
    do {
      layers.push_back(layer(depth));
    } while (take('|'));
    return layers;
  }

  // "4 x" in front of a layer.
  int64_t times() {
    const size_t begin = at_;
    const Word count = word(), cross = word();
    if (!whole_number(count.text) || (cross.text != "x" && cross.text != "×")) {
      at_ = begin;
      return 1;
    }
    const int64_t value = *whole_number(count.text);
    if (value < 1 || value > kMostTimes)
      bad("repeat a layer 1 to " + std::to_string(kMostTimes) + " times", count.at, count.text.size());
    return value;
  }

  Layer layer(int depth) {
    if (depth > kMostDepth) bad("the parentheses are nested too deeply", at_, 1);
    skip_space();
    Layer made;
    const size_t begin = at_;
    const int64_t repeated = times();
    if (next_is('(')) {
      made.kind = LayerKind::Group;
      inside(made, depth);
    } else {
      named(made, depth);
    }
    made.times = repeated;
    made.at = begin;
    made.length = at_ - begin;
    while (made.length > 0 && text_[begin + made.length - 1] == ' ') --made.length;
    return made;
  }

  void inside(Layer& made, int depth) {
    skip_space();
    const size_t opened = at_;
    if (!take('(')) bad("residual: put its layers in parentheses, as in residual(conv 3x3 64 | relu)", made.at, made.length);
    made.body = list(depth + 1);
    close(opened);
  }

  void named(Layer& made, int depth) {
    const Word name = word();
    if (name.text.empty()) bad("a layer is missing here", std::min(name.at, text_.size()), 1);
    const auto known = std::ranges::find(kNames, name.text, &Name::word);
    if (known == std::end(kNames))
      bad(std::string(name.text) + ": there is no such layer; there are " + all_names(), name.at, name.text.size());
    made.kind = known->kind;
    made.activation = known->activation;
    made.at = name.at;
    made.length = name.text.size();
    if (made.kind == LayerKind::Residual) return inside(made, depth);
    const size_t opened = at_;
    const bool parentheses = made.kind == LayerKind::Block && take('(');
    read_words(made, {made, words()});
    if (parentheses) close(opened);
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

std::string_view to_string(LayerKind kind) {
  constexpr std::string_view names[] = {"linear", "conv",      "maxpool",  "avgpool", "batchnorm", "layernorm", "activation", "dropout",
                                        "embed",  "attention", "residual", "block",   "group",     "branch",    "join"};
  return names[static_cast<size_t>(kind)];
}

std::vector<Layer> parse_layers(std::string_view text) {
  if (text.size() > kMostText) throw LayersError("the list of layers is too long", 0, 1);
  return Parser(text).whole();
}

namespace {

std::string steps_text(const Layer& layer) {
  std::string text;
  if (layer.stride != usual_stride(layer)) text += " stride " + std::to_string(layer.stride);
  if (layer.pad != usual_padding(layer)) text += " padding " + std::to_string(layer.pad);
  return text;
}

std::string window_text(const Layer& layer) {
  if (layer.window_h == 0) return " global";
  const std::string height = std::to_string(layer.window_h), width = std::to_string(layer.window_w);
  const bool pool = layer.kind != LayerKind::Conv;
  return " " + (pool && height == width ? height : height + "x" + width);
}

std::string list_text(const std::vector<Layer>& layers) {
  std::string text;
  for (const Layer& layer : layers) text += (text.empty() ? "" : " | ") + text_of(layer);
  return text;
}

std::string words_text(const Layer& layer) {
  switch (layer.kind) {
    case LayerKind::Linear:
      return layer.factor ? " x" + std::to_string(layer.factor) : layer.width ? " " + std::to_string(layer.width) : "";
    case LayerKind::Conv:
      return window_text(layer) + " " + std::to_string(layer.width) + steps_text(layer);
    case LayerKind::MaxPool:
    case LayerKind::AvgPool:
      return window_text(layer) + (layer.window_h ? steps_text(layer) : "");
    case LayerKind::Dropout:
      return " " + formatted("{}", layer.rate);
    case LayerKind::Embed:
      return " " + std::to_string(layer.width) + (layer.positions ? "" : " positions off");
    case LayerKind::Attention:
      return " heads " + std::to_string(layer.heads);
    case LayerKind::Block:
      return "(heads " + std::to_string(layer.heads) + (layer.rate > 0 ? ", dropout " + formatted("{}", layer.rate) : "") +
             (layer.bias ? "" : ", bias off") + ")";
    case LayerKind::Residual:
    case LayerKind::Group:
      return "(" + list_text(layer.body) + ")";
    default:
      return "";
  }
}

}  // namespace

std::string text_of(const Layer& layer) {
  const bool names_bias = !layer.bias && layer.kind != LayerKind::Block;
  return (layer.times > 1 ? std::to_string(layer.times) + " x " : "") + std::string(word_of(layer)) + words_text(layer) +
         (names_bias ? " bias off" : "");
}

namespace {

Layer simple(LayerKind kind, const Layer& like) {
  Layer made;
  made.kind = kind;
  made.bias = like.bias;
  made.at = like.at;
  made.length = like.length;
  return made;
}

Layer linear_of(int64_t width, int64_t factor, const Layer& like) {
  Layer made = simple(LayerKind::Linear, like);
  made.width = width;
  made.factor = factor;
  return made;
}

Layer activation_of(Activation activation, const Layer& like) {
  Layer made = simple(LayerKind::Activate, like);
  made.activation = activation;
  made.bias = true;
  return made;
}

// One half of a block: the sum of its input and layers that begin with a norm.
Layer half_block(const Layer& block, std::vector<Layer> layers) {
  Layer residual = simple(LayerKind::Residual, block);
  residual.bias = true;
  Layer norm = simple(LayerKind::LayerNorm, block);
  norm.bias = true;
  residual.body = {norm};
  residual.body.insert(residual.body.end(), layers.begin(), layers.end());
  if (block.rate > 0) {
    residual.body.push_back(simple(LayerKind::Dropout, residual));
    residual.body.back().rate = block.rate;
  }
  return residual;
}

std::vector<Layer> opened(const Layer& block, int64_t width) {
  Layer attention = simple(LayerKind::Attention, block);
  attention.heads = block.heads;
  return {half_block(block, {attention}),
          half_block(block, {linear_of(0, 4, block), activation_of(Activation::Gelu, block), linear_of(width, 0, block)})};
}

}  // namespace

std::vector<Layer> layers_of(const ModelSpec& model) {
  if (!model.layers.empty()) return parse_layers(model.layers);
  std::vector<Layer> layers;
  Layer none;
  none.bias = model.bias;
  if (model.kind == ModelKind::Mlp)
    for (const int64_t width : model.hidden) {
      layers.push_back(linear_of(width, 0, none));
      if (model.activation != Activation::None) layers.push_back(activation_of(model.activation, none));
    }
  layers.push_back(linear_of(0, 0, none));
  return layers;
}

namespace {

bool has_layer(const std::vector<Layer>& layers, std::initializer_list<LayerKind> kinds) {
  return std::ranges::any_of(layers, [&](const Layer& l) { return std::ranges::count(kinds, l.kind) > 0 || has_layer(l.body, kinds); });
}

}  // namespace

bool has_layer(const ModelSpec& model, std::initializer_list<LayerKind> kinds) {
  try {
    return has_layer(layers_of(model), kinds);
  } catch (const LayersError&) {
    return false;
  }
}

LayerShape LayerShape::picture(int64_t height, int64_t width, int64_t channels) {
  LayerShape shape;
  shape.height = height;
  shape.width = width;
  shape.channels = channels;
  return shape;
}

LayerShape LayerShape::symbols(int64_t time) {
  LayerShape shape;
  shape.time = time;
  return shape;
}

std::string text_of(const LayerShape& s) {
  const std::string cross = " × ";
  if (s.is_picture()) return std::to_string(s.height) + cross + std::to_string(s.width) + cross + std::to_string(s.channels);
  if (s.is_symbols()) return std::to_string(s.time);
  return (s.is_text() ? std::to_string(s.time) + cross : "") + std::to_string(s.features);
}

namespace {

std::string kind_of(const LayerShape& shape) {
  if (shape.is_picture()) return "pictures of " + text_of(shape);
  if (shape.is_symbols()) return "symbols";
  if (shape.is_text()) return "text of " + text_of(shape);
  return "rows of " + std::to_string(shape.features) + (shape.features == 1 ? " number" : " numbers");
}

// The divisors of `whole` on both sides of `wish`: "4 or 8".
std::string divisors_beside(int64_t whole, int64_t wish) {
  int64_t below = 1, above = 0;
  for (int64_t d = 1; d <= whole; ++d) {
    if (whole % d) continue;
    if (d < wish) below = d;
    if (d > wish && above == 0) above = d;
  }
  return std::to_string(below) + (above ? " or " + std::to_string(above) : "");
}

// Goes through the layers, opens blocks and repetitions, and follows the shape of a row.
class Resolver {
 public:
  Resolver(LayerShape input, int64_t outputs) : shape_(input), outputs_(outputs) {}

  std::vector<NetworkLayer> whole(const std::vector<Layer>& layers) {
    list(layers);
    const Layer& last = made_.back().layer;
    if (last.kind != LayerKind::Linear) fail(last, "the list ends with " + text_of(last) + ": end it with linear");
    if (shape_.features != outputs_)
      fail(last, "the last layer gives " + std::to_string(shape_.features) + " outputs and the data set asks for " +
                     std::to_string(outputs_) + ": write linear without a number");
    return std::move(made_);
  }

 private:
  void list(const std::vector<Layer>& layers) {
    for (const Layer& layer : layers)
      for (int64_t i = 0; i < layer.times; ++i) one(layer);
  }

  void one(const Layer& layer) {
    if (made_.size() >= kMostLayers) fail(layer, "the network has more than " + std::to_string(kMostLayers) + " layers");
    if (layer.kind == LayerKind::Group) return list(layer.body);
    if (layer.kind == LayerKind::Residual) return residual(layer);
    if (layer.kind == LayerKind::Block) return block(layer);
    Layer with = layer;
    with.times = 1;
    const LayerShape in = shape_;
    shape_ = after(with);
    add(with, in);
  }

  void block(const Layer& layer) {
    if (!shape_.is_text() || shape_.is_symbols()) needs(layer, "text behind embed");
    const bool outermost = part_.empty();
    if (outermost) part_ = "block " + std::to_string(++blocks_);
    list(opened(layer, shape_.features));
    if (outermost) part_.clear();
  }

  void residual(const Layer& layer) {
    const LayerShape in = shape_;
    const bool outermost = part_.empty();
    if (outermost) part_ = "residual " + std::to_string(++residuals_);
    add(simple(LayerKind::Branch, layer), in);
    ++depth_;
    list(layer.body);
    --depth_;
    if (!(shape_ == in))
      fail(layer, "residual: its layers turn " + text_of(in) + " into " + text_of(shape_) +
                      "; only equal shapes can be added");
    add(simple(LayerKind::Join, layer), in);
    if (outermost) part_.clear();
  }

  void add(const Layer& layer, const LayerShape& in) {
    NetworkLayer made{layer, in, shape_, {}, names_ - 1, part_, depth_};
    if (const auto prefix = prefix_of(layer.kind); !prefix.empty()) {
      made.number = names_++;
      name_ = std::string(prefix) + std::to_string(names_);
    }
    made.name = name_;
    made.number = std::max(made.number, 0);
    made_.push_back(made);
  }

  static std::string_view prefix_of(LayerKind kind) {
    const auto* const name = std::ranges::find(kNames, kind, &Name::kind);
    return name == std::end(kNames) ? std::string_view() : name->prefix;
  }

  [[noreturn]] void needs(const Layer& layer, const std::string& what) const {
    fail(layer, text_of(layer) + " needs " + what + ", and gets " + kind_of(shape_) +
                    (shape_.is_symbols() ? ": begin with embed" : ""));
  }

  LayerShape after(Layer& layer) const {
    switch (layer.kind) {
      case LayerKind::Embed:
        return embedded(layer);
      case LayerKind::Linear:
        return multiplied(layer);
      case LayerKind::Conv:
      case LayerKind::MaxPool:
      case LayerKind::AvgPool:
        return windowed(layer);
      case LayerKind::Attention:
        return attended(layer);
      case LayerKind::LayerNorm:
        if (shape_.is_picture()) fail(layer, "layernorm needs rows or text: choose batchnorm for pictures");
        break;
      case LayerKind::BatchNorm:
        if (shape_.is_text() && !shape_.is_symbols()) fail(layer, "batchnorm needs rows or pictures: choose layernorm for text");
        break;
      default:
        break;
    }
    if (shape_.is_symbols()) needs(layer, "numbers");
    return shape_;
  }

  LayerShape embedded(const Layer& layer) const {
    if (!shape_.is_symbols()) needs(layer, "symbols of a text");
    LayerShape out = shape_;
    out.features = layer.width;
    return out;
  }

  LayerShape multiplied(Layer& layer) const {
    if (shape_.is_symbols()) needs(layer, "numbers");
    const int64_t in = shape_.is_text() ? shape_.features : shape_.elements();
    if (layer.factor) layer.width = in * layer.factor;
    if (layer.width == 0) layer.width = outputs_;
    if (layer.width > kMostWidth * 4) fail(layer, text_of(layer) + " of " + std::to_string(in) + " values is too wide");
    LayerShape out(layer.width);
    out.time = shape_.time;
    return out;
  }

  LayerShape attended(const Layer& layer) const {
    if (!shape_.is_text() || shape_.is_symbols()) needs(layer, "text behind embed");
    const int64_t width = shape_.features;
    if (width % layer.heads)
      fail(layer, std::to_string(layer.heads) + " heads do not divide the width " + std::to_string(width) + ": choose " +
                      divisors_beside(width, layer.heads));
    return shape_;
  }

  void check_window(const Layer& layer) const {
    const LayerShape& s = shape_;
    const std::string of = text_of(layer) + " of a " + std::to_string(s.height) + " × " + std::to_string(s.width) + " picture";
    if (layer.window_h > s.height + 2 * layer.pad || layer.window_w > s.width + 2 * layer.pad)
      fail(layer, of + ": the window is larger than the picture");
    const bool rows = s.height % layer.window_h, columns = s.width % layer.window_w;
    if (layer.may_leave_rows || (!rows && !columns)) return;
    fail(layer, of + (rows ? " leaves a row" : " leaves a column") + ": add padding 1, or choose a window that divides " +
                    std::to_string(rows ? s.height : s.width));
  }

  LayerShape windowed(Layer& layer) const {
    if (!shape_.is_picture()) needs(layer, "pictures");
    if (layer.window_h == 0) layer.window_h = shape_.height, layer.window_w = shape_.width, layer.stride = 1;
    check_window(layer);
    const auto outputs = [&](int64_t size, int64_t window) { return (size + 2 * layer.pad - window) / layer.stride + 1; };
    return LayerShape::picture(outputs(shape_.height, layer.window_h), outputs(shape_.width, layer.window_w),
                               layer.kind == LayerKind::Conv ? layer.width : shape_.channels);
  }

  LayerShape shape_;
  int64_t outputs_;
  std::vector<NetworkLayer> made_;
  std::string part_, name_;
  int names_ = 0, depth_ = 0, blocks_ = 0, residuals_ = 0;
};

}  // namespace

std::vector<NetworkLayer> resolve(const std::vector<Layer>& layers, LayerShape input, int64_t outputs) {
  return Resolver(input, outputs).whole(layers);
}

}  // namespace ws
