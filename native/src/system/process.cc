#include "system/process.h"

#ifdef _WIN32
#include "system/windows.h"
#else
#include <sys/resource.h>
#include <unistd.h>
#endif

namespace cria {

#ifdef _WIN32

int process_id() { return int(GetCurrentProcessId()); }

void limit_memory_to_half() {
    MEMORYSTATUSEX memory{};
    memory.dwLength = sizeof memory;
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits{};
    // Stays open: the limit lasts as long as the job.
    const HANDLE job = CreateJobObjectW(nullptr, nullptr);
    if (!job || !GlobalMemoryStatusEx(&memory)) return;
    limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_PROCESS_MEMORY;
    limits.ProcessMemoryLimit = SIZE_T(memory.ullTotalPhys / 2);
    if (SetInformationJobObject(job, JobObjectExtendedLimitInformation, &limits, sizeof limits))
        AssignProcessToJobObject(job, GetCurrentProcess());
}

#else

int process_id() { return int(getpid()); }

void limit_memory_to_half() {
    const rlim_t half = rlim_t(sysconf(_SC_PHYS_PAGES)) / 2 * rlim_t(sysconf(_SC_PAGESIZE));
    rlimit limit;
    if (getrlimit(RLIMIT_DATA, &limit) != 0 || limit.rlim_cur <= half) return;
    limit.rlim_cur = half;
    setrlimit(RLIMIT_DATA, &limit);
}

#endif

}  // namespace cria
