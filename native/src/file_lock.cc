#include "cria/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "cria/error.h"

namespace cria {

namespace {

Error cannot_lock(const std::string & path, int error) {
    return Error("lock-failed", "cannot be locked")
        .subject(path)
        .expected("a writable folder on a disk with file locks")
        .received(std::generic_category().message(error));
}

}  // namespace

std::unique_ptr<FileLock> FileLock::acquire(const std::string & path) {
    for (;;) {
        const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (fd < 0) throw cannot_lock(path, errno);
        while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
            if (errno == EINTR) continue;
            const int error = errno;
            close(fd);
            if (error == EWOULDBLOCK) return nullptr;
            throw cannot_lock(path, error);
        }
        std::unique_ptr<FileLock> lock(new FileLock(fd, path));
        if (lock->is_current()) return lock;
        lock->path_.clear();  // it belongs to another process by now
    }
}

FileLock::~FileLock() {
    if (!path_.empty()) unlink(path_.c_str());
    close(fd_);
}

bool FileLock::is_current() const {
    struct stat ours{}, named{};
    return fstat(fd_, &ours) == 0 && stat(path_.c_str(), &named) == 0 && ours.st_dev == named.st_dev &&
           ours.st_ino == named.st_ino;
}

}  // namespace cria
