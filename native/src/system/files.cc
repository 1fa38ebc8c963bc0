#include "system/files.h"

#include <fcntl.h>

#include <cerrno>

#ifdef _WIN32
#include <io.h>

#include "system/windows.h"
#else
#include <unistd.h>
#endif

namespace cria {

std::filesystem::path to_path(const std::string & path) { return std::filesystem::u8path(path); }

bool file_exists(const std::string & path) {
    std::error_code error;
    return std::filesystem::exists(to_path(path), error);
}

#ifdef _WIN32

FILE * open_file(const std::string & path, const char * mode) {
    return _wfopen(to_wide(path).c_str(), to_wide(mode).c_str());
}

bool seek_file(FILE * file, uint64_t byte) { return _fseeki64(file, int64_t(byte), SEEK_SET) == 0; }

FILE * open_temporary_file() {
    // The C library's own is made in the drive's root, where few may write.
    wchar_t folder[MAX_PATH + 1], name[MAX_PATH + 1];
    if (GetTempPathW(MAX_PATH, folder) == 0 || GetTempFileNameW(folder, L"cri", 0, name) == 0) {
        errno = EACCES;
        return nullptr;
    }
    return _wfopen(name, L"w+bD");
}

std::string temporary_folder() {
    std::error_code error;
    return from_wide(std::filesystem::temp_directory_path(error).wstring());
}

int sync_file(const std::string & path) {
    const int file = _wopen(to_wide(path).c_str(), _O_RDWR | _O_BINARY);
    if (file < 0) return errno;
    const int error = _commit(file) == 0 ? 0 : errno;
    _close(file);
    return error;
}

// Names are durable at once on NTFS.
void sync_folder_of(const std::string &) {}

#else

FILE * open_file(const std::string & path, const char * mode) { return std::fopen(path.c_str(), mode); }

bool seek_file(FILE * file, uint64_t byte) { return fseeko(file, off_t(byte), SEEK_SET) == 0; }

FILE * open_temporary_file() { return std::tmpfile(); }

std::string temporary_folder() { return P_tmpdir; }

int sync_file(const std::string & path) {
    const int file = open(path.c_str(), O_RDONLY);
    if (file < 0) return errno;
    const int error = fsync(file) == 0 ? 0 : errno;
    close(file);
    return error;
}

void sync_folder_of(const std::string & path) {
    const size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
    const int file = open(folder.c_str(), O_RDONLY | O_DIRECTORY);
    if (file < 0) return;
    fsync(file);
    close(file);
}

#endif

}  // namespace cria
