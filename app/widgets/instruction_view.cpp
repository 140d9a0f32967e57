#include "app/widgets/instruction_view.h"

#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QPushButton>
#include <QStyledItemDelegate>
#include <QTableView>
#include <QVBoxLayout>
#include <algorithm>

#include "app/text/qt_text.h"
#include "app/text/units.h"
#include "app/widgets/fonts.h"
#include "app/widgets/stall_bar.h"
#include "app/widgets/table_style.h"
#include "app/widgets/theme.h"

namespace ws::app {
namespace {

class SamplesDelegate final : public QStyledItemDelegate {
 public:
  SamplesDelegate(const InstructionModel& model, QObject* parent) : QStyledItemDelegate(parent), model_(model) {}
  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    const prof::StallRow& row = model_.row(index.row());
    draw_stall_cell(*painter, option.rect, row.samples > 0 ? &row : nullptr, model_.mostSamples());
  }

 private:
  const InstructionModel& model_;
};

}  // namespace

void InstructionModel::setRows(std::vector<prof::StallRow> rows) {
  beginResetModel();
  rows_ = std::move(rows);
  most_ = 0;
  for (const prof::StallRow& row : rows_) most_ = std::max(most_, row.samples);
  shown_.resize(rows_.size());
  for (size_t i = 0; i < shown_.size(); ++i) shown_[i] = i;
  endResetModel();
}

void InstructionModel::showLine(const std::string& file, int line) {
  beginResetModel();
  shown_.clear();
  for (size_t i = 0; i < rows_.size(); ++i)
    if (line == 0 || (rows_[i].line == line && prof::same_file(rows_[i].file, file))) shown_.push_back(i);
  endResetModel();
}

QVariant InstructionModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const prof::StallRow& one = row(index.row());
  if (role == Qt::TextAlignmentRole)
    return QVariant::fromValue(static_cast<int>((index.column() == Text ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter));
  if (role == Qt::FontRole && index.column() == Text) return mono_font(11);
  if (role == Qt::ToolTipRole && one.samples > 0) return stall_tip(one);
  if (role != Qt::DisplayRole) return {};
  if (index.column() == Samples) return one.samples > 0 ? QVariant(static_cast<qlonglong>(one.samples)) : QVariant();
  if (index.column() == Line) return one.line > 0 ? QVariant(one.line) : QVariant();
  return one.instruction.empty() ? QStringLiteral("0x%1").arg(one.offset, 4, 16, QLatin1Char('0')) : text(one.instruction);
}

QVariant InstructionModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
  return section == Samples ? tr("samples") : section == Line ? tr("line") : tr("instruction");
}

InstructionView::InstructionView(QWidget* parent)
    : QWidget(parent), table_(new QTableView(this)), title_(new QLabel(this)), note_(new QLabel(this)), all_(new QPushButton(tr("All"), this)) {
  table_->setModel(&model_);
  style_table(*table_, tr("Machine instructions"));
  table_->horizontalHeader()->setStretchLastSection(true);
  table_->setColumnWidth(InstructionModel::Samples, 116), table_->setColumnWidth(InstructionModel::Line, 44);
  table_->setItemDelegateForColumn(InstructionModel::Samples, new SamplesDelegate(model_, table_));
  title_->setFont(ui_font(11)), note_->setFont(ui_font(11));
  note_->setWordWrap(true), note_->setMargin(6), note_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  all_->setFlat(true), all_->setToolTip(tr("Shows the instructions of all lines."));
  auto* top = new QHBoxLayout;
  top->setContentsMargins(6, 0, 2, 0);
  top->addWidget(title_, 1), top->addWidget(all_);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0), column->setSpacing(0);
  column->addLayout(top), column->addWidget(note_), column->addWidget(table_, 1);
  connect(all_, &QPushButton::clicked, this, [this] { showLine({}, 0); });
  connect(table_, &QTableView::clicked, this, [this](const QModelIndex& index) {
    const prof::StallRow& row = model_.row(index.row());
    if (row.line > 0) emit chosen(text(row.file), row.line);
  });
  setRows({}, {});
}

void InstructionView::setRows(std::vector<prof::StallRow> rows, const QString& sentence) {
  const bool any = !rows.empty();
  model_.setRows(std::move(rows));
  table_->setVisible(any);
  note_->setText(sentence), note_->setVisible(!sentence.isEmpty());
  showLine(file_, line_);
  if (any && model_.rowCount() == 0) showLine({}, 0);
}

void InstructionView::showLine(const std::string& file, int line) {
  file_ = file, line_ = line;
  model_.showLine(file, line);
  showTitle();
}

void InstructionView::showTitle() {
  uint64_t samples = 0;
  for (int i = 0; i < model_.rowCount(); ++i) samples += model_.row(i).samples;
  QString words = tr("%1 instructions").arg(count_text(model_.rowCount()));
  if (line_ > 0) words = tr("line %1 · ").arg(line_) + words;
  if (samples > 0) words += tr(" · %1 samples").arg(count_text(static_cast<int64_t>(samples)));
  title_->setText(model_.all() == 0 ? tr("Instructions") : words);
  all_->setVisible(line_ > 0 && model_.all() > 0);
}

QString InstructionView::title() const { return title_->text(); }
QString InstructionView::sentence() const { return note_->isHidden() ? QString() : note_->text(); }

}  // namespace ws::app
