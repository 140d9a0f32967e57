// Handles the run files of a recorded program that runs in several processes.
#pragma once
#include <string>
#include <vector>

namespace ws::prof {

bool holds_something(const std::string& path);   // a program that ended before anything was written leaves an empty file
bool is_still_written(const std::string& path);  // true while a process writes it
// The name that all files of one recording keep (kRecordingKey). `follower`: the address of its LiveFollower.
std::string recording_mark(const std::string& follower);
bool is_of_recording(const std::string& path, const std::string& mark);

std::vector<std::string> further_files(const std::string& path);  // of the other processes, by their numbers

// Removes the files of processes without GPU work: launchers, and workers of data loaders. If no process did GPU work,
// launchers stay. Files of the ranks of one program become one file. The file that remains has the name of the first
// one, which the user asked for. Does nothing while a file is still written. If the ranks cannot be joined, for example
// because the disk is full, their files stay.
void fold_processes(const std::vector<std::string>& files);

}  // namespace ws::prof
