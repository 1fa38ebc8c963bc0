#include "cria/file_lock.h"

#ifdef _WIN32
#include "system/windows.h"
#else
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#endif

#include "cria/error.h"

namespace cria {

namespace {

Error cannot_lock(const std::string & path, const std::string & reason) {
    return Error("lock-failed", "cannot be locked")
        .subject(path)
        .expected("a writable folder on a disk with file locks")
        .received(reason);
}

}  // namespace

#ifdef _WIN32

std::unique_ptr<FileLock> FileLock::acquire(const std::string & path) {
    const HANDLE file = CreateFileW(to_wide(path).c_str(), GENERIC_READ | GENERIC_WRITE | DELETE, 0, nullptr,
        OPEN_ALWAYS, FILE_ATTRIBUTE_NORMAL | FILE_FLAG_DELETE_ON_CLOSE, nullptr);
    if (file != INVALID_HANDLE_VALUE)
        return std::unique_ptr<FileLock>(new FileLock(reinterpret_cast<intptr_t>(file), path));
    if (GetLastError() == ERROR_SHARING_VIOLATION) return nullptr;
    throw cannot_lock(path, describe_last_error());
}

FileLock::~FileLock() { CloseHandle(reinterpret_cast<HANDLE>(file_)); }

#else

std::unique_ptr<FileLock> FileLock::acquire(const std::string & path) {
    const auto fail = [&](int error) { return cannot_lock(path, std::generic_category().message(error)); };
    for (;;) {
        const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (file < 0) throw fail(errno);
        while (flock(file, LOCK_EX | LOCK_NB) != 0) {
            if (errno == EINTR) continue;
            const int error = errno;
            close(file);
            if (error == EWOULDBLOCK) return nullptr;
            throw fail(error);
        }
        std::unique_ptr<FileLock> lock(new FileLock(file, path));
        if (lock->is_current()) return lock;
        lock->path_.clear();  // it belongs to another process by now
    }
}

FileLock::~FileLock() {
    if (!path_.empty()) unlink(path_.c_str());
    close(int(file_));
}

bool FileLock::is_current() const {
    struct stat ours{}, named{};
    return fstat(int(file_), &ours) == 0 && stat(path_.c_str(), &named) == 0 && ours.st_dev == named.st_dev &&
           ours.st_ino == named.st_ino;
}

#endif

}  // namespace cria
