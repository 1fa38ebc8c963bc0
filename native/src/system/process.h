// The running process.
#pragma once

namespace cria {

int process_id();

// Limits this process to half of the machine's memory. Where the system does not allow it, nothing is limited.
void limit_memory_to_half();

}  // namespace cria
