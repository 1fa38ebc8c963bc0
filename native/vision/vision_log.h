// Logs errors of the library itself, in the same way as mtmd's.
#pragma once

#include <string>

void log_error(const std::string & text);
