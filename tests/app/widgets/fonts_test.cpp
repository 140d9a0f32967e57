// Text is readable where the system offers no font: a bare machine with only a folder of font files.
#include <QFontDatabase>
#include <QPainter>
#include <QTemporaryDir>
#include <QTest>

#include "app/widgets/fonts.h"
#include "app/widgets/theme.h"
#include "tests/app/support/window_tests.h"

using namespace ws::app;

namespace {

QImage drawn(const QString& text, const QFont& font) {
  QImage image(120, 40, QImage::Format_RGB32);
  image.fill(Qt::white);
  QPainter painter(&image);
  painter.setFont(font);
  painter.drawText(image.rect(), Qt::AlignCenter, text);
  return image;
}

// Missing glyphs are boxes, and all boxes look the same.
bool readable(const QFont& font) { return drawn("Wj", font) != drawn("iQ", font); }

}  // namespace

class FontsTest : public QObject {
  Q_OBJECT
 private slots:
  void aFolderOfFontsIsEnough();
  void foldersAreAskedInOrder();
};

void FontsTest::aFolderOfFontsIsEnough() {
  if (readable(QFont("Sans Serif"))) QSKIP("this Qt finds fonts without fontconfig's configuration");
  set_theme(*qApp, ThemeName::Dark);
  QVERIFY(QFontDatabase::hasFamily("DejaVu Sans"));
  QVERIFY(readable(ui_font(12)));
  QVERIFY(readable(number_font(12)));
  QVERIFY(readable(mono_font(12)));
  QVERIFY(QFontDatabase::isFixedPitch(mono_family()));
}

void FontsTest::foldersAreAskedInOrder() {
  QCOMPARE(font_folders().front(), qEnvironmentVariable("QT_QPA_FONTDIR"));
  QVERIFY(font_folders().contains("/usr/share/fonts"));
}

namespace {

int run_without_fonts(int argc, char** argv) {
  QTemporaryDir bare;
  QFile config(bare.filePath("fonts.conf"));
  if (!config.open(QIODevice::WriteOnly)) return 1;
  config.write("<?xml version=\"1.0\"?><!DOCTYPE fontconfig SYSTEM \"fonts.dtd\"><fontconfig></fontconfig>");
  config.close();
  qputenv("FONTCONFIG_FILE", config.fileName().toUtf8());
  qputenv("QT_QPA_FONTDIR", "/usr/share/fonts/truetype/dejavu");
  return ws::test::run_test<FontsTest>(argc, argv);
}

const ws::test::InWindowTests fonts_in_window_tests("FontsTest", run_without_fonts);

}  // namespace

#include "fonts_test.moc"
