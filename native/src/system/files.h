// Files by paths in UTF-8, alike on each system.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

namespace cria {

struct CloseFile {
    void operator()(FILE * file) const { std::fclose(file); }
};
using FilePtr = std::unique_ptr<FILE, CloseFile>;

std::filesystem::path to_path(const std::string & path);

bool file_exists(const std::string & path);

// As std::fopen, which takes no UTF-8 on Windows. Null: errno has the reason.
FILE * open_file(const std::string & path, const char * mode);

// Whether reading goes on at that byte.
bool seek_file(FILE * file, uint64_t byte);

// A file for reading and writing that nobody else sees, and that is gone when it is closed. Null: errno has the reason.
FILE * open_temporary_file();

// The folder of such files, for messages.
std::string temporary_folder();

// Writes a closed file's bytes to its disk. 0, or the reason as errno has it.
int sync_file(const std::string & path);

// The same for the names in a folder: a rename is durable only once its folder is.
void sync_folder_of(const std::string & path);

}  // namespace cria
