#include "app/workspace/remote_machine.h"

#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QTextStream>
#include <nlohmann/json.hpp>

#include "app/core/remote/job_folder.h"
#include "profiling/base/json_input.h"
#include "profiling/base/paths.h"

namespace ws::app {
namespace {

using nlohmann::json;

// The answers of the machine, collected outside the window's thread.
struct Answer {
  bool gpu = false;
  QString device;
  std::vector<RemoteJobInfo> running;
};

bool has_gpu(const JsonInput& machine) { return machine.at("gpu").there() && !machine.at("gpu").is_null(); }

QString device_of(const JsonInput& machine) {
  return has_gpu(machine) ? QString::fromStdString(machine.at("gpu").text())
             : QObject::tr("no GPU, %1 threads").arg(machine.at("cpu_threads").whole(0));
}

RemoteJobInfo job_of(const JsonInput& row) {
  const JsonInput job = row.at("job");
  RemoteJobInfo info{QString::fromStdString(row.required("run").text()), QString::fromStdString(job.at("title").text()),
                     QString::fromStdString(job.at("kind").text()), {}};
  info.text = job.value().dump();
  if (info.kind == "experiment" && info.title.isEmpty()) info.title = QString::fromStdString(job.at("experiment").at("title").text());
  if (info.kind == "train" || info.kind == "torch") info.spec = parse_spec(job.required("spec").value().dump());
  QStringList words;
  for (const JsonInput& word : job.at("command").items()) words << QString::fromStdString(word.text());
  if (info.title.isEmpty()) info.title = words.join(' ');
  return info;
}

Answer ask_about(RemoteLink& link) {
  const json hello = link.ask({{"do", "hello"}});
  const JsonInput machine = JsonInput(hello, "").at("machine");
  return {has_gpu(machine), device_of(machine), jobs_there(link)};
}

}  // namespace

std::vector<RemoteJobInfo> jobs_there(RemoteLink& link) {
  const json answer = link.ask({{"do", "jobs"}});
  std::vector<RemoteJobInfo> jobs;
  for (const JsonInput& row : JsonInput(answer, "").at("jobs").items()) jobs.push_back(job_of(row));
  return jobs;
}

QString path_for_copy(const QString& folder, const std::string& run_file) {
  const std::string stem = file_name_of(run_file.substr(0, run_file.rfind(".wsrun")));
  const QString name = QDir(folder).filePath(stem.empty() ? "run" : QString::fromStdString(stem));
  QString path = name + ".wsrun";
  for (int number = 2; QFileInfo::exists(path); ++number) path = name + QString("-%1.wsrun").arg(number);
  return path;
}

RemoteMachine::RemoteMachine(const QString& address)
    : link_(std::make_shared<RemoteLink>(parse_remote(address.toStdString()))) {
  constexpr int kLookMs = 100;
  timer_.setInterval(kLookMs);
  connect(&timer_, &QTimer::timeout, this, &RemoteMachine::look);
  timer_.start();
}

QString RemoteMachine::place() const { return QString::fromStdString(link_->address().place()); }
QString RemoteMachine::address() const { return QString::fromStdString(link_->address().text()); }
QString RemoteMachine::text() const { return text_; }

void RemoteMachine::look() {
  const LineStatus now = link_->status();
  up_ = now.state == LineState::Up;
  QString text = place() + QStringLiteral(" · ") + device_;
  if (now.state == LineState::Connecting) text = tr("connecting to %1…").arg(place());
  if (now.state == LineState::Cut) text = tr("%1: cut for %2 s, reconnecting").arg(place()).arg(static_cast<int>(now.cut_s));
  if (now.state == LineState::Refused) text = tr("%1: not connected").arg(place());
  if (text != std::exchange(text_, text)) emit changed();
  sayWhatChanged(now.state);
  if (now.state == LineState::Refused) {
    timer_.stop();
    emit refused(QString::fromStdString(now.sentence));
    return;
  }
  if (!up_ || std::exchange(asked_, true)) return;
  auto answer = std::make_shared<Answer>();
  asking_.start([link = link_, answer](const Job::Side&) { *answer = ask_about(*link); },
                [this, answer](const QString& problem) {
                  if (!problem.isEmpty()) return emit refused(problem);
                  gpu_ = answer->gpu, device_ = answer->device, running_ = std::move(answer->running);
                  emit ready();
                });
}

void RemoteMachine::sayWhatChanged(LineState now) {
  const LineState before = std::exchange(state_, now);
  if (before == now || !asked_) return;
  if (now == LineState::Cut)
    emit said(tr("The connection to %1 is cut. The jobs there go on, and Warpsight reconnects by itself.").arg(place()), true);
  if (now == LineState::Up) emit said(tr("%1 is connected again. Nothing is lost.").arg(place()), false);
}

namespace {

void add_host(const QString& name, QStringList& hosts) {
  if (!name.contains('*') && !name.contains('?') && !name.startsWith('!') && !hosts.contains(name)) hosts << name;
}

// Files of an Include line: a pattern, relative to ~/.ssh.
QFileInfoList included(QString pattern) {
  if (pattern.startsWith("~/")) pattern.replace(0, 1, QDir::homePath());
  const QFileInfo all(QDir(QDir::homePath() + "/.ssh"), pattern);
  return all.dir().entryInfoList({all.fileName()}, QDir::Files | QDir::Hidden, QDir::Name);
}

// `files`: those that are read already.
void add_hosts(const QString& path, QStringList& hosts, QStringList& files) {
  QFile file(path);
  if (files.contains(path) || !file.open(QIODevice::ReadOnly | QIODevice::Text)) return;
  files << path;
  QTextStream lines(&file);
  for (QString line; lines.readLineInto(&line);) {
    QStringList words = line.simplified().replace('=', ' ').remove('"').split(' ', Qt::SkipEmptyParts);
    const QString key = words.isEmpty() ? QString() : words.takeFirst().toLower();
    for (const QString& word : words) {
      if (key == "host") add_host(word, hosts);
      if (key != "include") continue;
      for (const QFileInfo& more : included(word)) add_hosts(QDir::cleanPath(more.filePath()), hosts, files);
    }
  }
}

}  // namespace

QStringList known_hosts() {
  QStringList hosts, files;
  add_hosts(QDir::cleanPath(QDir::homePath() + "/.ssh/config"), hosts, files);
  return hosts;
}

}  // namespace ws::app
