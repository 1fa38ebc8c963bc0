// A lock that the system releases when the holding process ends for any reason, so that no lock is ever stale:
// flock(2), on Windows a file that nobody else may open and that goes with its handle.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace cria {

class FileLock {
   public:
    // Creates the file if it is missing. Returns null when another process or this one holds the lock. Throws
    // Error("lock-failed").
    static std::unique_ptr<FileLock> acquire(const std::string & path);
    // Removes the file and releases the lock.
    ~FileLock();
    FileLock(const FileLock &) = delete;
    FileLock & operator=(const FileLock &) = delete;

   private:
    FileLock(intptr_t file, const std::string & path) : file_(file), path_(path) {}
    // Whether the file at the path is the open one: its last holder may have removed it before we locked it.
    bool is_current() const;

    intptr_t file_;  // as the system names it
    std::string path_;
};

}  // namespace cria
