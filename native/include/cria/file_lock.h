// A lock that the system ends with the process that holds it, however that ends: no lock is ever stale. (flock(2).)
#pragma once

#include <memory>
#include <string>

namespace cria {

class FileLock {
   public:
    // Makes the file if it is missing. Null when it is held, by another process or by this one. Throws
    // Error("lock-failed").
    static std::unique_ptr<FileLock> acquire(const std::string & path);
    // Removes the file and ends the lock.
    ~FileLock();
    FileLock(const FileLock &) = delete;
    FileLock & operator=(const FileLock &) = delete;

   private:
    FileLock(int fd, const std::string & path) : fd_(fd), path_(path) {}
    // Whether the file at the path is the open one: its last holder may have removed it before we locked it.
    bool is_current() const;

    int fd_;
    std::string path_;
};

}  // namespace cria
