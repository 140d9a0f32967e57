#include "app/widgets/command_palette.h"

#include <QKeyEvent>
#include <QLineEdit>
#include <QListView>
#include <QMenu>
#include <QMenuBar>
#include <QPainter>
#include <QStyledItemDelegate>
#include <QTimer>
#include <QVBoxLayout>
#include <algorithm>

#include "app/widgets/theme.h"

namespace ws::app {
namespace {

constexpr int kKeysRole = Qt::UserRole + 1;

QString plain(QString text) { return text.remove('&').remove(QStringLiteral("…")); }

void collect(const QMenu* menu, const QString& path, std::vector<QAction*>& commands, std::vector<QString>& paths) {
  for (QAction* action : menu->actions()) {
    if (action->isSeparator() || action->text().isEmpty()) continue;
    const QString name = (path.isEmpty() ? QString() : path + " › ") + plain(action->text());
    if (action->menu())
      collect(action->menu(), name, commands, paths);
    else
      commands.push_back(action), paths.push_back(name);
  }
}

class CommandDelegate : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;
  QSize sizeHint(const QStyleOptionViewItem&, const QModelIndex&) const override { return {200, 26}; }
  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    const Theme& t = theme();
    painter->fillRect(option.rect, option.state & QStyle::State_Selected ? t.selected_row : t.base);
    const QRect box = option.rect.adjusted(12, 0, -12, 0);
    painter->setFont(ui_font(12.5));
    painter->setPen(index.flags() & Qt::ItemIsEnabled ? t.text : t.quiet);
    painter->drawText(box, Qt::AlignVCenter, index.data().toString());
    painter->setPen(t.secondary);
    painter->setFont(ui_font(11));
    painter->drawText(box, Qt::AlignVCenter | Qt::AlignRight, index.data(kKeysRole).toString());
  }
};

}  // namespace

int match_score(const QString& text, const QString& typed) {
  if (typed.isEmpty()) return 1;
  if (const auto at = text.indexOf(typed, 0, Qt::CaseInsensitive); at >= 0)
    return 1000 - static_cast<int>(at) + (at == 0 || text[at - 1] == ' ' ? 500 : 0);
  int score = 1;
  qsizetype from = 0;
  for (QChar c : typed) {
    if (c == ' ') continue;
    const auto at = text.indexOf(c, from, Qt::CaseInsensitive);
    if (at < 0) return 0;
    score += at == 0 || text[at - 1] == ' ' ? 12 : at == from ? 6 : 1;
    from = at + 1;
  }
  return score;
}

void CommandModel::setCommands(std::vector<QAction*> commands, const std::vector<QString>& paths) {
  all_.clear();
  for (size_t i = 0; i < commands.size(); ++i) all_.push_back({commands[i], paths[i]});
  filter({});
}

void CommandModel::filter(const QString& typed) {
  beginResetModel();
  std::vector<std::pair<int, size_t>> scored;
  for (size_t i = 0; i < all_.size(); ++i)
    if (const int score = match_score(all_[i].path, typed.trimmed()); score > 0) scored.push_back({score, i});
  std::stable_sort(scored.begin(), scored.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  shown_.clear();
  for (const auto& [score, i] : scored) shown_.push_back(i);
  endResetModel();
}

QAction* CommandModel::at(int row) const {
  return row >= 0 && row < static_cast<int>(shown_.size()) ? all_[shown_[static_cast<size_t>(row)]].action.data()
                                                           : nullptr;
}
int CommandModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(shown_.size());
}

QVariant CommandModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || index.row() >= rowCount()) return {};
  const Command& command = all_[shown_[static_cast<size_t>(index.row())]];
  if (role == Qt::DisplayRole) return command.path;
  if (role == kKeysRole && command.action) return command.action->shortcut().toString(QKeySequence::NativeText);
  return {};
}

CommandPalette::CommandPalette(QMenuBar* menus, QWidget* parent)
    : QDialog(parent, Qt::Dialog | Qt::FramelessWindowHint), line_(new QLineEdit(this)), list_(new QListView(this)) {
  setAttribute(Qt::WA_DeleteOnClose);
  setWindowTitle(tr("Commands"));
  line_->setPlaceholderText(tr("Type a command"));
  line_->setAccessibleName(tr("Command"));
  line_->installEventFilter(this);
  list_->setAccessibleName(tr("Commands"));
  list_->setModel(&model_);
  list_->setItemDelegate(new CommandDelegate(list_));
  list_->setFrameShape(QFrame::NoFrame);
  list_->setUniformItemSizes(true);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(8, 8, 8, 8);
  column->addWidget(line_);
  column->addWidget(list_, 1);
  resize(560, 380);
  if (parent) move(parent->mapToGlobal(QPoint((parent->width() - width()) / 2, 60)));
  std::vector<QAction*> commands;
  std::vector<QString> paths;
  for (QAction* top : menus->actions())
    if (top->menu()) collect(top->menu(), plain(top->text()), commands, paths);
  model_.setCommands(std::move(commands), paths);
  const auto first = [this] { list_->setCurrentIndex(model_.index(0)); };
  connect(line_, &QLineEdit::textChanged, this, [this, first](const QString& typed) { model_.filter(typed); first(); });
  connect(line_, &QLineEdit::returnPressed, this, &CommandPalette::run);
  connect(list_, &QListView::clicked, this, &CommandPalette::run);
  first();
  line_->setFocus();
}

bool CommandPalette::eventFilter(QObject* watched, QEvent* event) {
  if (watched != line_ || event->type() != QEvent::KeyPress) return QDialog::eventFilter(watched, event);
  const int key = static_cast<QKeyEvent*>(event)->key();
  const int by = key == Qt::Key_Down       ? 1
                 : key == Qt::Key_Up       ? -1
                 : key == Qt::Key_PageDown ? 8
                 : key == Qt::Key_PageUp   ? -8
                                           : 0;
  if (by == 0 || model_.rowCount() == 0) return false;
  list_->setCurrentIndex(model_.index(std::clamp(list_->currentIndex().row() + by, 0, model_.rowCount() - 1)));
  return true;
}

void CommandPalette::run() {
  QPointer<QAction> action = model_.at(list_->currentIndex().row());
  close();
  // Wait until the palette is closed, so that a dialog of the command has the window as its parent.
  if (action && action->isEnabled()) QTimer::singleShot(0, action, &QAction::trigger);
}

}  // namespace ws::app
