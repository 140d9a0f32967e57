// Writes everything that a job reports into the files of its folder, where clients read it.
#pragma once
#include <string>

#include "app/core/remote/curves.h"
#include "app/core/remote/job_folder.h"
#include "app/core/remote/update_codec.h"

namespace ws::app {

class JobSender {
 public:
  explicit JobSender(const JobFolder& job);
  void send(const RemoteUpdate& update);
  void say(const std::string& text, bool problem = false);

 private:
  JobFolder job_;
  UpdateWriter writer_;
  Journal news_;
  CurveJournal curves_;
  PieceJournal trace_;
};

}  // namespace ws::app
