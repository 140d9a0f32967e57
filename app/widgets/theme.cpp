#include "app/widgets/theme.h"

#include <QApplication>
#include <QFile>
#include <QFontMetricsF>
#include <QGuiApplication>
#include <QIconEngine>
#include <QPainter>
#include <QPalette>
#include <QPixmap>
#include <QPixmapCache>
#include <QScreen>
#include <QSplitter>
#include <QStyleFactory>
#include <QSvgRenderer>
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "app/widgets/fonts.h"
#include "app/text/units.h"
#include "profiling/analysis/step_breakdown.h"

// The resources are in a static library, so they must be initialised by name, outside any namespace.
static void load_resources() { Q_INIT_RESOURCE(resources); }

namespace ws::app {
namespace {

// Order of prof::Meaning: Matrix, Pointwise, Loss, Optimizer, Copy, Allocation, Sync, Launch, Idle, Other, Communication,
// Reduction.
Theme dark() {
  Theme t{ThemeName::Dark};
  t.window = 0x15171C, t.base = 0x1B1E24, t.header = 0x1F2329, t.raised = 0x282D36, t.button = 0x252A32;
  t.input = 0x121419, t.border = 0x2B303A, t.strong_border = 0x414957, t.field_outline = 0x6E7787;
  t.grid = 0x272C35, t.minor_grid = 0x21252C, t.text = 0xE7EAF0, t.secondary = 0xAAB2C0, t.quiet = 0x8F98A8;
  t.focus = 0x6AA8FF, t.primary = 0x2F6FDE, t.chosen = 0x2A4B7C, t.selected_row = 0x20314B;
  t.better = 0x6CC5AA, t.worse = 0xE89553, t.late = 0xFFFFFF, t.fill_ink = 0x0B0E13, t.fill_edge = QColor(0, 0, 0, 89);
  const QRgb meanings[prof::kMeanings] = {0x3A85EB, 0x2DC698, 0xF6D94B, 0xD1A3FC, 0xB4E7F6, 0xEA3A3A,
                                          0x7B7F85, 0x565E6C, 0x464D5A, 0x8F98A8, 0xD23CC3, 0xEF8200};
  const QRgb runs[8] = {0xCCAA78, 0x4ADADC, 0xE64E91, 0xA8CB14, 0xAE89FF, 0x76FFC1, 0x7EA8CF, 0xC6FC7E};
  const QRgb classes[8] = {0x4050F0, 0xF0F0B0, 0xD090B0, 0x60B020, 0x804090, 0xA070C0, 0x20F030, 0xC02020};
  std::ranges::copy(meanings, t.meaning);
  std::ranges::copy(runs, t.run), std::ranges::copy(classes, t.data_class);
  t.hatch = 0x464D5A;
  return t;
}

Theme light() {
  Theme t{ThemeName::Light};
  t.window = 0xECEEF1, t.base = 0xFFFFFF, t.header = 0xF6F7F9, t.raised = 0xFFFFFF, t.button = 0xFBFCFD;
  t.input = 0xFFFFFF, t.border = 0xD6DAE1, t.strong_border = 0xB4BBC7, t.field_outline = 0x858D9A;
  t.grid = 0xE6E9EE, t.minor_grid = 0xF0F2F5, t.text = 0x191C22, t.secondary = 0x48505D, t.quiet = 0x5F6772;
  t.focus = 0x1C69E0, t.primary = 0x1F6FEB, t.chosen = 0xD5E5FC, t.selected_row = 0xE0ECFD;
  t.better = 0x125E4C, t.worse = 0xA8480B, t.late = 0x191C22, t.fill_ink = 0x12151A, t.fill_edge = QColor(0x12, 0x15, 0x1A, 115);
  const QRgb meanings[prof::kMeanings] = {0x3D82E2, 0x6DCB92, 0xF9D632, 0xD29DF3, 0xBCE6F8, 0xEC3A38,
                                          0x8D9098, 0xBDC2CB, 0xBAC1CC, 0x5F6772, 0xD23CC3, 0xEF8200};
  const QRgb runs[8] = {0x6E4306, 0x03586F, 0x9A1655, 0x2B8309, 0x5C3198, 0x9933B3, 0x696A8C, 0x2A3600};
  const QRgb classes[8] = {0xE09080, 0x202050, 0x2050F0, 0x805050, 0x80A0F0, 0xA070A0, 0x503020, 0x204090};
  std::ranges::copy(meanings, t.meaning);
  std::ranges::copy(runs, t.run), std::ranges::copy(classes, t.data_class);
  t.hatch = 0xBAC1CC;
  return t;
}

// 45°, 2 px lines; 8 px wide so that the diagonal repeats without a seam.
QPixmap hatch(const QColor& colour) {
  QPixmap tile(8, 8);
  tile.fill(Qt::transparent);
  QPainter painter(&tile);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(QPen(colour, 1.6));
  for (int x : {-8, 0, 8}) painter.drawLine(QPointF(x, 8), QPointF(x + 8, 0));
  return tile;
}

// Brushes need a QGuiApplication.
void give_brushes(Theme& t) {
  t.idle = QBrush(hatch(t.hatch));
}

Theme& current() {
  static Theme instance = dark();
  return instance;
}

QPalette palette_of(const Theme& t) {
  QPalette p;
  p.setColor(QPalette::Window, t.window);
  p.setColor(QPalette::Base, t.base);
  p.setColor(QPalette::AlternateBase, t.header);
  p.setColor(QPalette::ToolTipBase, t.raised);
  p.setColor(QPalette::ToolTipText, t.text);
  p.setColor(QPalette::Button, t.button);
  p.setColor(QPalette::ButtonText, t.text);
  p.setColor(QPalette::Text, t.text);
  p.setColor(QPalette::WindowText, t.text);
  p.setColor(QPalette::BrightText, t.text);
  p.setColor(QPalette::PlaceholderText, t.quiet);
  p.setColor(QPalette::Mid, t.border);
  p.setColor(QPalette::Dark, t.strong_border);
  p.setColor(QPalette::Light, t.header);
  p.setColor(QPalette::Midlight, t.header);
  p.setColor(QPalette::Shadow, t.window.darker(140));
  p.setColor(QPalette::Highlight, t.chosen);
  p.setColor(QPalette::HighlightedText, t.text);
  p.setColor(QPalette::Link, t.focus);
  p.setColor(QPalette::LinkVisited, t.focus);
  for (auto role : {QPalette::Text, QPalette::WindowText, QPalette::ButtonText})
    p.setColor(QPalette::Disabled, role, t.quiet);
  return p;
}

QString style_sheet(const Theme& t) {
  QFile file(":/themes/warpsight.qss");
  if (!file.open(QIODevice::ReadOnly)) return {};
  QString sheet = QString::fromUtf8(file.readAll());
  const std::pair<const char*, QColor> tokens[] = {{"@strong_border", t.strong_border},
                                                   {"@field_outline", t.field_outline},
                                                   {"@selected_row", t.selected_row},
                                                   {"@secondary", t.secondary},
                                                   {"@window", t.window},
                                                   {"@base", t.base},
                                                   {"@header", t.header},
                                                   {"@raised", t.raised},
                                                   {"@button", t.button},
                                                   {"@input", t.input},
                                                   {"@border", t.border},
                                                   {"@text", t.text},
                                                   {"@quiet", t.quiet},
                                                   {"@worse", t.worse},
                                                   {"@focus", t.focus},
                                                   {"@primary", t.primary},
                                                   {"@chosen", t.chosen},
                                                   {"@grid", t.grid}};
  for (const auto& [token, colour] : tokens) sheet.replace(token, colour.name());
  return sheet.replace("@variant", t.dark() ? "dark" : "light");
}

// Sizes of the splitters without hidden parts. The size of a hidden part could not be restored.
std::vector<std::pair<QSplitter*, QList<int>>> splitter_sizes() {
  std::vector<std::pair<QSplitter*, QList<int>>> sizes;
  for (QWidget* widget : QApplication::allWidgets())
    if (auto* splitter = qobject_cast<QSplitter*>(widget); splitter && !splitter->sizes().contains(0))
      sizes.emplace_back(splitter, splitter->sizes());
  return sizes;
}

QFont sized(const QString& family, double px, int weight) {
  QFont font(family);
  const QScreen* screen = QGuiApplication::primaryScreen();
  font.setPointSizeF(px * 72.0 / (screen ? screen->logicalDotsPerInchY() : 96.0));
  font.setWeight(static_cast<QFont::Weight>(weight));
  font.setHintingPreference(QFont::PreferNoHinting);
  return font;
}

}  // namespace

QColor mixed(const QColor& top, const QColor& ground, double share) {
  const auto mix = [share](int a, int b) { return static_cast<int>(std::lround(a * share + b * (1 - share))); };
  return {mix(top.red(), ground.red()), mix(top.green(), ground.green()), mix(top.blue(), ground.blue())};
}

// FNV-1a: the same in every run and on every machine.
QColor hashed_colour(std::string_view name, Hashed strength) {
  constexpr int kHues = 24;
  uint32_t hash = 2166136261U;
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 16777619U;
  const double hue = static_cast<double>((hash ^ (hash >> 15)) % kHues) / kHues;
  const bool strong = strength == Hashed::Strong;
  return theme().dark() ? QColor::fromHslF(hue, strong ? 0.38 : 0.12, strong ? 0.64 : 0.56)
                        : QColor::fromHslF(hue, strong ? 0.48 : 0.16, strong ? 0.76 : 0.84);
}

double luminance(const QColor& c) {
  const auto linear = [](double v) { return v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4); };
  return 0.2126 * linear(c.redF()) + 0.7152 * linear(c.greenF()) + 0.0722 * linear(c.blueF());
}

const Theme& theme() { return current(); }

void set_theme(QApplication& app, ThemeName name) {
  load_resources();
  ensure_fonts();
  current() = name == ThemeName::Dark ? dark() : light();
  give_brushes(current());
  static bool first = true;  // setting style and font styles every widget again, so do it once
  if (std::exchange(first, false)) app.setStyle(QStyleFactory::create("Fusion")), app.setFont(ui_font(12.5));
  // Qt 6.4: replacing a style sheet restyles a widget once more for each of its ancestors (0.37 s here). Removing the
  // old one first styles every widget once. Splitters must not follow the sizes in between.
  const auto sizes = splitter_sizes();
  app.setStyleSheet({});
  app.setPalette(palette_of(current()));
  app.setStyleSheet(style_sheet(current()));
  for (const auto& [splitter, each] : sizes) splitter->setSizes(each);
}

PaintTheme::PaintTheme(ThemeName name) : before_(current()) {
  if (name == before_.name) return;
  current() = name == ThemeName::Dark ? dark() : light();
  give_brushes(current());
}

PaintTheme::~PaintTheme() { current() = before_; }

QFont ui_font(double px, int weight) { return sized(ui_family(), px, weight); }

QFont number_font(double px, int weight) {
  // DejaVu Sans is wider than Inter at the same size.
  return sized(number_family(), px * 0.92, weight >= 600 ? 700 : 400);
}

QFont mono_font(double px) {
  QFont font = sized(mono_family(), px, 400);
  font.setStyleHint(QFont::Monospace);
  return font;
}

namespace {

class ThemeIcon : public QIconEngine {
 public:
  ThemeIcon(QString name, QColor Theme::*colour, QColor fixed)
      : name_(std::move(name)), colour_(colour), fixed_(std::move(fixed)) {}
  void paint(QPainter* painter, const QRect& rect, QIcon::Mode mode, QIcon::State state) override {
    const double scale = painter->device()->devicePixelRatioF();
    QPixmap picture = pixmap((QSizeF(rect.size()) * scale).toSize(), mode, state);
    picture.setDevicePixelRatio(scale);
    painter->drawPixmap(rect, picture);
  }
  QPixmap pixmap(const QSize& size, QIcon::Mode mode, QIcon::State) override {
    const QColor ink = mode == QIcon::Disabled ? current().quiet : fixed_.isValid() ? fixed_ : current().*colour_;
    const QString key = QString("icon/%1/%2/%3").arg(name_, ink.name()).arg(size.width());
    QPixmap picture;
    if (QPixmapCache::find(key, &picture)) return picture;
    QFile file(":/icons/" + name_ + ".svg");
    if (size.isEmpty() || !file.open(QIODevice::ReadOnly)) return {};
    QSvgRenderer svg(QByteArray(file.readAll()).replace("currentColor", ink.name().toUtf8()));
    picture = QPixmap(size);
    picture.fill(Qt::transparent);
    QPainter painter(&picture);
    svg.render(&painter);
    painter.end();
    QPixmapCache::insert(key, picture);
    return picture;
  }
  QIconEngine* clone() const override { return new ThemeIcon(*this); }

 private:
  QString name_;
  QColor Theme::*colour_;
  QColor fixed_;
};

// Two letters are narrower than one, so that every badge has the same size.
void draw_squeezed(QPainter& painter, const QRectF& box, const QString& text) {
  constexpr double kEdge = 1;
  const double width = painter.fontMetrics().horizontalAdvance(text), space = box.width() - 2 * kEdge;
  if (width <= space) return painter.drawText(box, Qt::AlignCenter, text);
  painter.translate(box.center());
  painter.scale(space / width, 1);
  painter.drawText(QRectF(-width, -box.height() / 2, 2 * width, box.height()), Qt::AlignCenter, text);
}

class BadgeIcon : public QIconEngine {
 public:
  explicit BadgeIcon(int slot) : slot_(slot) {}
  void paint(QPainter* painter, const QRect& rect, QIcon::Mode, QIcon::State) override {
    painter->save();
    painter->translate(rect.topLeft());
    painter->scale(rect.height() / 16.0, rect.height() / 16.0);  // a wider icon has space on its right
    draw_badge(*painter, QRectF(0.5, 0.5, 15, 15), slot_);
    painter->restore();
  }
  QPixmap pixmap(const QSize& size, QIcon::Mode mode, QIcon::State state) override {
    QPixmap picture(size);
    picture.fill(Qt::transparent);
    QPainter painter(&picture);
    paint(&painter, picture.rect(), mode, state);
    return picture;
  }
  QIconEngine* clone() const override { return new BadgeIcon(*this); }

 private:
  int slot_;
};

}  // namespace

QIcon theme_icon(const QString& name, QColor Theme::*colour) { return QIcon(new ThemeIcon(name, colour, {})); }
QIcon theme_icon(const QString& name, Qt::GlobalColor fixed) {
  return QIcon(new ThemeIcon(name, &Theme::text, QColor(fixed)));
}

double number_width(const QFont& font, const QString& text) {
  const QFontMetricsF metrics(font);
  const double digit = metrics.horizontalAdvance(QLatin1Char('0'));
  double width = 0;
  for (QChar c : text) width += c.isDigit() ? digit : metrics.horizontalAdvance(c);
  return width;
}

void draw_number(QPainter& painter, const QRectF& box, Qt::Alignment align, const QString& text) {
  const QFontMetricsF metrics(painter.font());
  const double digit = metrics.horizontalAdvance(QLatin1Char('0'));
  const double width = number_width(painter.font(), text);
  double x = box.left();
  if (align & Qt::AlignRight) x = box.right() - width;
  if (align & Qt::AlignHCenter) x = box.center().x() - width / 2;
  double y = box.center().y() + (metrics.ascent() - metrics.descent()) / 2;
  if (align & Qt::AlignTop) y = box.top() + metrics.ascent();
  if (align & Qt::AlignBottom) y = box.bottom() - metrics.descent();
  for (QChar c : text) {
    const double own = metrics.horizontalAdvance(c);
    const double pitch = c.isDigit() ? digit : own;
    painter.drawText(QPointF(x + (pitch - own) / 2, y), c);
    x += pitch;
  }
}

void draw_badge(QPainter& painter, const QRectF& box, int slot, bool filled) {
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing);
  const Theme& t = theme();
  const bool ticked = slot >= 0 && filled;
  painter.setPen(ticked ? QPen(Qt::NoPen) : QPen(slot >= 0 ? t.run[slot % 8] : t.strong_border, 1));
  painter.setBrush(ticked ? QBrush(t.run[slot % 8]) : QBrush(Qt::NoBrush));
  painter.drawRoundedRect(ticked ? box : box.adjusted(.5, .5, -.5, -.5), 3, 3);
  if (slot >= 0) {
    painter.setFont(ui_font(10.5, 700));
    const QColor on_fill = t.dark() ? t.fill_ink : QColor(Qt::white);
    painter.setPen(ticked ? on_fill : t.run[slot % 8]);
    draw_squeezed(painter, box, run_letter(slot));
  }
  painter.restore();
}

QIcon badge_icon(int slot) { return QIcon(new BadgeIcon(slot)); }

QColor Theme::ink_on(const QColor& fill) const {
  constexpr double kDarkest = 0.18;  // dark ink is readable on brighter fills
  if (luminance(fill) > kDarkest) return fill_ink;
  return dark() ? text : QColor(Qt::white);
}

void draw_fill(QPainter& painter, const QRectF& box, const QBrush& fill) {
  painter.fillRect(box, fill);
  if (box.width() < 2) return;
  painter.setPen(QPen(theme().fill_edge, 1));
  painter.setBrush(Qt::NoBrush);
  painter.drawRect(box.adjusted(.5, .5, -.5, -.5));
}

// Forward and backward are shades of computation; waiting for data is what one should see first. A launch gap is idle time.
QColor part_colour(const prof::PartId& part) {
  constexpr double kForward = 0.75, kBackward = 0.4, kOther = 0.5, kRankWait = 0.35, kDataDark = 0.4, kDataLight = 0.6;
  const Theme& t = theme();
  switch (part.kind) {
    case prof::PartKind::HostForward:
      return mixed(t.of(prof::Meaning::Matrix), t.base, kForward);
    case prof::PartKind::HostBackward:
      return mixed(t.of(prof::Meaning::Matrix), t.base, kBackward);
    case prof::PartKind::HostData:
      return mixed(t.worse, t.base, t.dark() ? kDataDark : kDataLight);
    case prof::PartKind::HostOther:
      return mixed(t.of(prof::Meaning::Sync), t.base, kOther);
    case prof::PartKind::RankWait:
      return mixed(t.of(prof::Meaning::Communication), t.base, kRankWait);
    default:
      return t.of(part.meaning == prof::Meaning::Launch ? prof::Meaning::Idle : part.meaning);
  }
}

QBrush part_brush(const prof::PartId& part) {
  const bool own = part.kind == prof::PartKind::HostData || part.kind == prof::PartKind::HostForward || part.kind == prof::PartKind::HostBackward || part.kind == prof::PartKind::HostOther || part.kind == prof::PartKind::RankWait;
  if (own) return {part_colour(part)};
  return meaning_brush(part.meaning == prof::Meaning::Launch ? prof::Meaning::Idle : part.meaning);
}

QBrush meaning_brush(prof::Meaning meaning) {
  return meaning == prof::Meaning::Idle ? theme().idle : QBrush(theme().of(meaning));
}

QString meaning_name(prof::Meaning meaning) { return QString::fromUtf8(prof::meaning_name(meaning)); }

}  // namespace ws::app
